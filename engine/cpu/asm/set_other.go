//go:build !amd64

package asm

var sets []*Set
