// Package affine turns the affine accesses of a primitive into loops over memory. A
// primitive says, for every coordinate of an operand, a linear form over its output
// axes and its folded ones; here that becomes runs of neighbouring elements, which
// kernels read without asking where each one lies.
//
// Call [NewView] for an operand that is read element by element in some order of axes
// ([Load], [Overlay]); use [Grid] with the strides of [Linear] where a kernel wants
// tables of offsets; [Clip] and [BoundsOf] say what part of a run lies inside the
// operand, for the rest is padding.
//
// Invariants: offsets and strides count elements, not bytes. Merging axes changes no
// order. An element outside the operand is never read.
package affine
