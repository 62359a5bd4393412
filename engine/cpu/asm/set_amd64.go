package asm

import (
	"github.com/klauspost/cpuid/v2"
	"golang.org/x/sys/cpu"

	"github.com/tally-network/tally/core/quant"
)

var (
	hasSHA256x2  = cpu.X86.HasAVX && cpuid.CPU.Supports(cpuid.SHA)
	hasSHA256x16 = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW
)

func avx512Int8() Int8Kernels {
	if cpu.X86.HasAVX512VNNI {
		return Int8Kernels{Group: 4, GEMM: avx512Int8QuadGEMM}
	}
	return Int8Kernels{Group: 2, GEMM: avx512Int8PairGEMM}
}

// f16cBlocks are those of AVX2 where the processor also converts float16.
func f16cBlocks() map[quant.Type]BlockKernels {
	if !cpuid.CPU.Supports(cpuid.F16C) {
		return nil
	}
	return avx2Blocks
}

// The features that x/sys/cpu reports are those whose registers the operating
// system saves.
var sets = []*KernelSet{
	{
		Name: "avx512",
		Has: cpu.X86.HasAVX2 && cpu.X86.HasBMI2 && cpu.X86.HasFMA && cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ &&
			cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL,
		Lanes: 16, GEMM: avx512GEMM, PrefetchGEMM: avx512PrefetchGEMM, DotGEMM: avx512DotGEMM, AxpyGEMM: avx512AxpyGEMM, Int8: avx512Int8(), Depthwise: avx512Depthwise,
		Transpose8: avx2Transpose8, InterleaveBytes: avx2InterleaveBytes, Gather: avx512Gather, GatherStride2: avx512GatherStride2, GatherReversed: avx512GatherReversed, Deinterleave: avx512Deinterleave, MinMagnitude: avx512MinMagnitude, MaxSize: avx512MaxSize,
		Maps: avx512Maps, Int64Maps: avx512Int64Maps, Casts: avx512Casts, Folds: avx512Folds, BroadcastRows: avx512BroadcastRows, SumLanes: avx512SumLanes, EltwiseChain: avx512EltwiseChain, Blocks: avx512Blocks,
	},
	{
		Name:  "avx2",
		Has:   cpu.X86.HasAVX2 && cpu.X86.HasFMA,
		Lanes: 8, GEMM: avx2GEMM, DotGEMM: avx2DotGEMM, AxpyGEMM: avx2AxpyGEMM, Int8: Int8Kernels{Group: 2, GEMM: avx2Int8PairGEMM}, Depthwise: avx2Depthwise,
		Transpose8: avx2Transpose8, InterleaveBytes: avx2InterleaveBytes, Gather: avx2Gather, GatherStride2: avx2GatherStride2, GatherReversed: avx2GatherReversed, Deinterleave: avx2Deinterleave, MinMagnitude: avx2MinMagnitude, MaxSize: avx2MaxSize,
		Maps: avx2Maps, Int64Maps: avx2Int64Maps, Casts: avx2Casts, Folds: avx2Folds, BroadcastRows: avx2BroadcastRows, SumLanes: avx2SumLanes, EltwiseChain: avx2EltwiseChain, Blocks: f16cBlocks(),
	},
}
