package asm

import "golang.org/x/sys/cpu"

// neonBytes uses the dot products of ARMv8.2 where there are any.
func neonBytes() Bytes {
	if cpu.ARM64.HasASIMDDP {
		return Bytes{Group: 4, SignedA: true, Tiles: neonQuadsTiles}
	}
	return Bytes{Group: 2, Tiles: neonPairsTiles}
}

// Every arm64 has the other instructions.
var sets = []*Set{{
	Name: "neon", Has: true,
	Lanes: 8, Tiles: neonTiles, Bytes: neonBytes(), Turn: genericTurn, Patch: genericPatch, Least: genericLeast, Greatest: genericGreatest,
	Flow: genericFlow,
}}
