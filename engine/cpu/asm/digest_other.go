//go:build !amd64

package asm

const hasTwins = false

func shaTwins(_ *[2][8]uint32, _, _ *byte, _ int, _ *byte, _, _ int) {}
