// Package replay computes what an order asks for. A provider plays a unit for
// the first time; auditors, challengers and verifiers play the same steps again
// and must get the same bits.
//
// A [Job] is an order's problem made concrete: model, records and programs in memory. [Load]
// makes one of an order's files; [New], of training, and [NewBatch] make one of what a
// consumer brings. [Job.UnitOf] and [Unit.Play] compute a unit, and [Job.MergeStates]
// computes a merge.
//
// Invariants: nothing is computed from bytes that have not been checked against the root
// that the order binds them by. States depend on the order alone, and not on who plays or
// with how many threads.
//
// Source: docs/spec/lease.md; core/train says what a step is.
package replay
