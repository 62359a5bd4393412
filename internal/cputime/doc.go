// Package cputime tells how long this process has had processors, for measurements that
// other processes must not disturb.
//
//	begun := cputime.Used()
//	// what is measured
//	took := cputime.Used() - begun
package cputime
