package asm

import "golang.org/x/sys/cpu"

// neonInt8 uses the dot products of ARMv8.2 where there are any.
func neonInt8() Int8Kernels {
	if cpu.ARM64.HasASIMDDP {
		return Int8Kernels{Group: 4, SignedA: true, GEMM: neonInt8QuadGEMM}
	}
	return Int8Kernels{Group: 2, GEMM: neonInt8PairGEMM}
}

// Every arm64 has the other instructions.
var sets = []*KernelSet{{
	Name: "neon", Has: true,
	Lanes: 8, GEMM: neonGEMM, Int8: neonInt8(), Transpose8: genericTranspose8, Gather: genericGather, MinMagnitude: genericMinMagnitude, MaxSize: genericMaxSize,
	EltwiseChain: genericEltwiseChain,
}}
