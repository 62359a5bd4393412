// Package tensor defines what a tensor is, what its root is, and what each
// primitive operation on tensors computes, bit for bit.
//
// # Tensors
//
// A tensor is read as a matrix: leading axes are rows, the last axis is the
// columns. The matrix is cut into tiles of 32×32 elements (smaller at the
// edges); the root commits to type, shape and the Merkle tree over the tiles.
//
// # Primitives
//
// Every operator is lowered to primitives of one form (Primitive): output
// element o is computed from operand elements at positions that are affine in
// o and in the folded coordinates k. There are four kinds:
//
//   - map: no folded axes; a scalar function with one rounding;
//   - index: no folded axes; a copy, possibly through an index operand;
//   - fold: one operand is reduced over k in a fixed order;
//   - contraction: products of two operands are accumulated over k.
//
// A Cell evaluates one element of the output, in fold blocks of at most 32
// consecutive terms; the referee of a dispute recomputes exactly one of them.
//
// Call [New] for a tensor and [Tensor.Root] for its root. [Primitive.Check] says whether a
// primitive is one, and [Primitive.Eval] computes it.
//
// # Invariants
//
// Results depend on nothing but operands: no threads, tile sizes or machines.
// The only NaN is 0x7fc00000. Subnormals are kept; −0 and +0 differ.
//
// The rules of summation follow the project's specification in
// docs/spec/operators.md.
package tensor
