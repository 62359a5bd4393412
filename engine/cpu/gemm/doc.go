// Package gemm contracts: matrix products of every rank and type, batched ones,
// convolutions and their gradients. [New] returns the kernel of a tensor.Dot.
//
// A contraction is C = A·B over four groups of axes (contraction.go). Its output is cut
// into blocks of MC rows and NC columns, and each takes KC terms at a time. Both operands
// are packed into panels of MR rows and NR columns (packer.go, gather.go), or read in place
// through an indirection table. Micro-kernels of package asm advance MR×NR accumulators
// (block.go), which then go to the output and to the epilogue (store.go). That is
// the blocking of Goto and van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication" (2008), and of BLIS. Convolutions are implicit
// GEMM (implicit.go) over a padded copy of their input (padded.go); transposed ones with
// a stride are split into phases (polyphase.go). Few rows take the axpy and the dot form.
// Integers of 8 bits differ in what a word of a panel holds (int8.go). Constant operands
// are packed once (prepack.go). Types that no micro-kernel takes are summed in plain Go
// (plain.go). Constants that trade one cost for another are those of package tuning.
//
// Invariants: a float accumulator is one chain of fused multiply-adds from +0 over a
// K-block of tensor.KBlock terms; K-blocks are added by a tree. No block size, packing or
// form changes that, and so none changes a bit. Padding is packed as 0, and elements that
// a 0 could change are evaluated by definition.
package gemm
