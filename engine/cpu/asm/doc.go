// Package asm holds the micro-kernels of engine/cpu, which are written in a machine's own
// vector instructions, and says which of them the machine at hand can run.
//
// Those of one set of instructions make up a [KernelSet]. [Chosen] is the one to use; [Sets]
// lists all that this machine supports, and [Generic], which is plain Go.
// The environment variable TALLY_CPU forces one (avx512, avx2, neon, generic).
//
// Invariants: a kernel gives the bits that core/tensor defines, whatever the
// set; what it stores holds no NaN but the canonical one. Kernels check nothing:
// callers see to it that every address lies inside its slice. They allocate
// nothing and call nothing.
//
// What is named _amd64 beside this file is written by engine/cpu/gen, which
// uses avo.
package asm

//go:generate go run -C ../gen . ../asm
