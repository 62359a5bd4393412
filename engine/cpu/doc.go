// Package cpu is the executor for processors: it runs tensor programs fast, and gives the
// bits of their definition. Call [New], then Prepare once for a program and Run often.
//
// The packages below are the chapters on how that is done, bottom to top. Each imports
// only packages that stand before it in this list:
//
//	tuning    every constant that trades one cost for another
//	asm       micro-kernels in the machine's vector instructions, in sets by processor
//	mem       slices over raw memory, strided copies, the memory planner, huge pages
//	affine    a primitive's affine accesses as loops over memory
//	eltwise   elementwise micro-kernels: maps, casts, folds of rows
//	weights   packed weights, shared by plans ([Options])
//	kernel    what a kernel, a producer, an epilogue, a worker is
//	gemm      contractions: blocking, packing, store; implicit GEMM; integers of 8 bits
//	quantized products by quantised weights, in panels of blocks
//	attention products in which each row has its own terms; tokens that look at a cache
//	spatial   pooling and depthwise convolution
//	reduce    folds, argmax, scatter, rank
//	recurrent the repeated step of a recurrent net, as a loop
//	fuse      several nodes as one; elementwise chains; epilogues of producers
//	plan      which nodes run together, by which kernel, where in memory
//	cpu       the executor: runs (run.go) and threads (pool.go)
//
// A program on its way through them:
//
//	graph.Program ─ plan ─┬─ fusion groups ─────── fuse ── stages of eltwise, chains of asm
//	                      ├─ producers + epilogues fuse ── gemm, spatial
//	                      ├─ repeated steps ────── recurrent: loops of such
//	                      ├─ single nodes ──────── gemm, attention, spatial, reduce, by definition
//	                      └─ arena, weights packed once
//	                            │
//	plan.Plan ─ cpu ── task after task: blocks, shared by the threads of a pool
//
// Where a run is observed, every node is a task of its own, by a second plan.
//
// Invariants: every output has the bits that tensor.Primitive.Eval gives. Threads share a
// task's blocks and never the terms of one element, so their number changes no bit. A
// fusion performs the same operations in the same order on each element as its nodes
// would alone.
package cpu
