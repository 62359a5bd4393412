// Package fuse runs several nodes as one: maps, copies and folds of rows whose values stay
// in the cache between them ([Fusion]), elementwise chains whose values stay in registers
// (chain.go, merge.go), and what follows a producer, block by block ([WithEpilogue]).
//
// [Build] makes a fusion of a [Group] of nodes that package plan has found to fit together.
// A fusion is a list of stages over values; a value is an operand, an output, or a range of
// scratch memory. Rows are independent, so threads share them.
//
// Invariant: every element takes the same operations in the same order as node by node.
package fuse
