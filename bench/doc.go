// Package bench holds the benchmarks that need more than one package: whole
// training steps and runs. Those of one kernel or encoding live beside it.
//
// Call [Named] for a [Benchmark], or range over [All]. tally bench runs them, and bench/peers
// puts other programs' figures beside them.
//
// Invariant: a [Row] of several measurements holds their median, their quartiles and how many
// there are.
//
// Source: docs/performance.md says how each figure was taken.
package bench
