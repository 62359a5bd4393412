// Package plan turns a program into tasks: it decides which nodes run together, by which
// kernel, and where in memory their outputs are. It is the only place that chooses kernels.
//
// [New] drops what no output needs, elides joins whose operands can be computed in place
// (concat.go), puts maps, copies and folds of rows into fusions (fuser.go), recomputes what
// costs less than to store and load (rematerialize.go), lets fusions follow the producers
// that they alone read (epilogues.go), finds groups that repeat step by step and lets them
// share one work (recurrence.go), chooses a kernel for every other node (compile.go),
// packs constants once, and lays outputs into one arena, whose ranges are used again after
// the last reader (arena.go). [Plan.Allocate] returns such an arena.
//
// Invariants: a plan does not depend on the number of threads; it is immutable, and runs
// share it. Planned or node by node, a program gives the same bits.
package plan
