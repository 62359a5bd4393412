// Package plausibility looks at a chain of checkpoints with the six rules by
// which proof of training judges one: is this what training looks like?
//
// It is a filter for people, and never evidence. Who invents checkpoints passes
// all six without training (forgery_test.go does it), and honest training fails
// one now and then. What decides is exact re-execution (node/evidence).
//
// The rules, in the order of the paper's indices:
//
//	P1  the loss falls           Mann–Kendall trend over the checkpoints
//	P2  weights change smoothly  largest step of a tensor's distribution (W1), in its median step
//	P3  a fresh start            each matrix at the start is normal, uniform or the required mixture (KS)
//	P4  an independent start     first principal component, neighbours' correlation
//	P5  the end comes nearer     Spearman's rank correlation of distance to the end
//	P6  the start is its own     distance from start to end, against shuffled starts
//
// Sources: Liu et al., Proof of Training (WWW 2023), and the mixture of
// MatrixAI §3.4. Thresholds are our own, calibrated on honest runs
// (honest_test.go): the published ones are absolute, or refuse honest runs.
//
// Call [Assess].
//
// Invariant: a [Report] says what each rule found, and never that the work was done.
package plausibility
