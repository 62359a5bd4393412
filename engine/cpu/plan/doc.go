// Package plan turns a program into tasks: it decides which nodes run together, by which
// kernel, and where in memory their outputs are. It is the only place that chooses kernels.
//
// Call [ConstantPart], which says what to compute once (constants.go), then [New], then
// [Plan.Pack], which packs constants once (weights.go), then [Plan.Allocate], which returns
// an arena for a run. New drops what no output needs. Then:
//
//	blocks.go         lets products read quantised weights from their blocks
//	concat.go         elides joins whose operands can be computed in place
//	fuser.go          puts maps, copies and folds of rows into fusions
//	rematerialize.go  recomputes what costs less than to store and load
//	epilogues.go      lets fusions follow the producers that they alone read
//	recurrence.go     finds groups that repeat step by step, and lets them share one work
//	compile.go        chooses a kernel for every other node
//	arena.go          gives outputs their places, which serve again after the last reader
//
// Invariants: a plan does not depend on the number of threads; it is immutable, and runs
// share it. Planned or node by node, a program gives the same bits.
package plan
