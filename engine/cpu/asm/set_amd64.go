package asm

import (
	"github.com/klauspost/cpuid/v2"
	"golang.org/x/sys/cpu"
)

var hasTwins = cpu.X86.HasAVX && cpuid.CPU.Supports(cpuid.SHA)

func avx512Bytes() Bytes {
	if cpu.X86.HasAVX512VNNI {
		return Bytes{Group: 4, Tiles: avx512QuadsTiles}
	}
	return Bytes{Group: 2, Tiles: avx512PairsTiles}
}

// The features that x/sys/cpu reports are those whose registers the operating
// system saves.
var sets = []*Set{
	{
		Name: "avx512",
		Has: cpu.X86.HasAVX2 && cpu.X86.HasBMI2 && cpu.X86.HasFMA && cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ &&
			cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL,
		Lanes: 16, Tiles: avx512Tiles, Far: avx512FarTiles, Turned: avx512Turned, Swept: avx512Swept, Bytes: avx512Bytes(),
		Turn: avx2Turn, Weave: avx2Weave, Patch: avx512Patch, Sift: avx512Sift, Back: avx512Back, Unzip: avx512Unzip, Least: avx512Least, Greatest: avx512Greatest,
		Maps: avx512Maps, Wholes: avx512Wholes, Casts: avx512Casts, Folds: avx512Folds, Spread: avx512Spread, Take: avx512Take, Flow: avx512Flow,
	},
	{
		Name:  "avx2",
		Has:   cpu.X86.HasAVX2 && cpu.X86.HasFMA,
		Lanes: 8, Tiles: avx2Tiles, Turned: avx2Turned, Swept: avx2Swept, Bytes: Bytes{Group: 2, Tiles: avx2PairsTiles},
		Turn: avx2Turn, Weave: avx2Weave, Patch: avx2Patch, Sift: avx2Sift, Back: avx2Back, Unzip: avx2Unzip, Least: avx2Least, Greatest: avx2Greatest,
		Maps: avx2Maps, Wholes: avx2Wholes, Casts: avx2Casts, Folds: avx2Folds, Spread: avx2Spread, Take: avx2Take, Flow: avx2Flow,
	},
}
