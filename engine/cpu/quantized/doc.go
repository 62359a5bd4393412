// Package quantized multiplies by weights of which only blocks of small integers are kept. [New] returns the kernel of a contraction
// with such an operand.
//
// Weights are packed once into panels of 16 columns (panel.go), in which the same bits of all columns stand side by side (format.go). So a
// vector is columns, and its lanes go through the terms in the order of the definition. Few rows take micro-kernels that unpack a
// weight in registers and multiply by it (asm.BlockKernel): each byte is read once, in its order. For many rows some terms of a few panels become
// float32 in the first-level cache, for the tiles of gemm (compute.go).
//
// Invariants: those of gemm; no size of a block or tile changes a bit. A panel has the bits of its blocks, and those can be made
// from it again. Where nothing was packed once, each run packs the panels that it needs.
//
// Source of the blocks: package core/quant.
package quantized
