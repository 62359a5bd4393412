// Package bench holds the benchmarks that need more than one package: whole
// training steps and runs. Those of one kernel or encoding live beside it.
package bench
