// Package cpu is the executor for processors.
//
// A program is prepared once: every node gets the fastest kernel that takes it,
// and every intermediate tensor a place in memory that is used again as soon as
// its last reader is done. Kernels read operands through views, which turn the
// affine accesses of a primitive into runs of neighbouring elements. What no
// kernel takes is evaluated by its definition.
//
// Invariants: every output has the bits that tensor.Primitive.Eval gives.
// Threads share a kernel's output elements and never the terms of one element,
// so their number changes no bit.
//
// The blocking of contractions follows Goto and van de Geijn, "Anatomy of
// High-Performance Matrix Multiplication" (2008). Their tiles, and other kernels
// in a machine's own instructions, are in package asm.
package cpu
