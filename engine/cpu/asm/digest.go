package asm

import (
	"crypto/sha256"
	"encoding/binary"
)

// Prefetch is memory that is wanted soon: of so many rows, a step apart in bytes, the
// first four lines of cache.
type Prefetch struct {
	First      *byte
	Step, Rows int
}

// The words of a digest lie in the order FEBA HGDC, as the instructions want them.
var (
	wordOrder = [8]int{3, 2, 7, 6, 1, 0, 5, 4} // where A, B, C … lie
	initial   = [8]uint32{0x9b05688c, 0x510e527f, 0xbb67ae85, 0x6a09e667, 0x5be0cd19, 0x1f83d9ab, 0xa54ff53a, 0x3c6ef372}
)

// HasSHA256x2 reports whether two digests take hardly longer than one.
func HasSHA256x2() bool { return hasSHA256x2 }

// SumSHA256x2 returns the SHA-256 digests of two messages of one length, which it
// may pad behind their ends.
func SumSHA256x2(a, b []byte, ahead Prefetch) (x, y [sha256.Size]byte) {
	a, b = pad(a), pad(b)
	states := [2][8]uint32{initial, initial}
	sha256x2(&states, &a[0], &b[0], len(a)/sha256.BlockSize, ahead.First, ahead.Step, ahead.Rows)
	for i, at := range wordOrder {
		binary.BigEndian.PutUint32(x[4*i:], states[0][at])
		binary.BigEndian.PutUint32(y[4*i:], states[1][at])
	}
	return x, y
}

// pad appends a bit, zeros up to the end of a block, and the length in bits.
func pad(message []byte) []byte {
	const length = 8
	bits := uint64(len(message)) * 8
	message = append(message, 0x80)
	for len(message)%sha256.BlockSize != sha256.BlockSize-length {
		message = append(message, 0)
	}
	return binary.BigEndian.AppendUint64(message, bits)
}
