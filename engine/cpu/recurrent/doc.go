// Package recurrent runs what repeats itself in time. A recurrent layer reaches package
// plan unrolled: each step is the same few tasks, of other tensors. Plan finds the step,
// builds its tasks once, and runs it as a [Loop]: on one thread, for steps are shorter
// than a wait for another thread. [NewProduct] is the product within a step, of a state
// of few rows and weights that are packed once.
//
// Invariants: a loop computes what its steps would one by one, in their order. A product
// is one chain of fused multiply-adds for each element, as in package gemm, which takes
// those that NewProduct refuses.
package recurrent
