// Package reduce folds: sums, products and extremes over axes ([New]), positions of
// extremes, scatters ([NewScatter]) and ranks ([NewRank]). Folds of short contiguous rows
// are stages of fusions instead (package eltwise has their loops); windows are in package
// spatial.
//
// Invariants: the terms of one element are folded in the order of the definition: sums in
// tensor.Lanes lanes that are joined by a tree, others one after the other.
package reduce
