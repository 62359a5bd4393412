// Package eltwise holds elementwise micro-kernels: what maps, casts, comparisons and
// folds of rows do to contiguous elements, for every element type.
//
// Call [Map], [Cast], [Broadcast] or [FoldRows] for a [Func] and run it over rows. Each
// takes whole registers with the machine's instructions where package asm has them, and
// the remainder, or everything, in plain Go.
//
// Invariants: a Func gives the bits that tensor.Primitive.Eval gives, element by
// element; the plain loops say again, over slices, what package tensor says of one
// element. Every NaN that is stored is the canonical one.
package eltwise
