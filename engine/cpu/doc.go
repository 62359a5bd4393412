// Package cpu is the executor for processors.
//
// A program is prepared once. Neighbouring maps, copies and folds of rows become
// a fusion (group.go, link.go), which is run block by block, so that what one
// node makes for the next stays in the cache (fusion.go), in registers where it
// can (flow.go); cheap maps are computed again rather than kept for later
// (repeat.go). Every other node gets the fastest kernel that takes it (kernel.go),
// whose pieces go through the fusion that reads them, if nothing else does
// (attach.go). Outputs have places in one arena, which are used again as soon as
// the last reader is done (plan.go); operands of a join lie side by side in that of
// its output (join.go). Constants that contractions pack are packed once (keep.go).
// Where a run is observed, every node is a task of its own, by a second plan.
//
// Kernels read operands through views, which turn the affine accesses of a
// primitive into runs of neighbouring elements. Elements are computed by loops
// over slices: in plain Go for every type (loops.go, cast.go, reduce.go), and in
// the machine's own instructions where package asm has them (vector.go). What
// neither takes is evaluated by its definition.
//
// Invariants: every output has the bits that tensor.Primitive.Eval gives.
// Threads share a kernel's output elements and never the terms of one element,
// so their number changes no bit. A fusion performs the same operations in the
// same order on each element as its nodes would alone.
//
// The blocking of contractions follows Goto and van de Geijn, "Anatomy of
// High-Performance Matrix Multiplication" (2008). Their tiles, and other kernels
// in a machine's own instructions, are in package asm.
package cpu
