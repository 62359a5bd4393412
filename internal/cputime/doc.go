// Package cputime tells how long this process has had processors, for measurements that
// other processes must not disturb.
//
//	begun := cputime.Used()
//	// what is measured
//	took := cputime.Used() - begun
//
// Invariant: what other processes do does not count.
package cputime
