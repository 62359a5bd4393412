//go:build !amd64

package asm

const hasSHA256x2, hasSHA256x16 = false, false

func sha256x2(_ *[2][8]uint32, _, _ *byte, _ int) {}

func sha256x16(_ *[16][32]byte, _ *[16]*byte, _ *byte, _ *uint64, _, _ int) {}
