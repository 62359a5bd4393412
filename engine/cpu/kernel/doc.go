// Package kernel says what a kernel is, and what kernels and those who run them share.
//
// A [Kernel] computes one primitive in independent blocks, which threads take from each
// other; all memory that it computes in belongs to a [Worker], one for each thread. A
// [Producer] hands every block to an [Epilogue] while it is in the cache. A [Prepacker]
// packs its constants once. [ByDefinition] is the kernel that takes every primitive,
// and [Evaluate] the element by which others mend what padding may have spoilt.
//
// Invariants: blocks of one kernel write different elements; the terms of one element
// belong to one block, so the number of threads changes no bit. Kernels are immutable
// once a plan is made, and safe for concurrent runs with workers of their own.
package kernel
