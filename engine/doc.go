// Package engine runs programs fast.
//
// The meaning of a program is fixed, bit for bit, by core/tensor and
// core/graph. An Executor computes the same bits in less time; the package
// internal/testkit/conform holds every executor to that. Two executors never
// differ, so a caller chooses one by speed alone.
//
// Invariants: the number of threads, the machine and earlier runs change no
// bit of a result. Inputs are never written to.
package engine
