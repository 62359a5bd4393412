//go:build !amd64 && !arm64

package asm

var pairGEMM [][]MicroKernel
