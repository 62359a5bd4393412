package asm

import (
	"crypto/sha256"
	"encoding/binary"
)

// DigestLanes is how many messages [Digests] takes at a time.
const DigestLanes = 16

// fewestLanes is how many messages are worth the kernel that hashes sixteen: it takes as long as eight with the next best.
const fewestLanes = DigestLanes / 2

// initial is the state before any message (FIPS 180-4, section 5.3.3).
var initial = [8]uint32{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}

// pairOrder is where A, B, C … lie in the kernel for two messages: as FEBA HGDC.
var pairOrder = [8]int{3, 2, 7, 6, 1, 0, 5, 4}

// Digests hashes messages of one prefix and one length by SHA-256, several at a time where the machine can.
type Digests struct {
	prefix, length int       // in bytes; the length includes the prefix
	messages       [2][]byte // padded, for bodies to be copied into
	masks          []uint64  // by blocks, which of their bytes are of the body
}

// NewDigests makes ready for messages of a prefix and a body of so many bytes.
func NewDigests(prefix []byte, body int) *Digests {
	const mark, length = 1, 8 // behind a message stand a bit, zeros, and its length in bits
	n := len(prefix) + body
	blocks := (n + mark + length + sha256.BlockSize - 1) / sha256.BlockSize
	d := &Digests{prefix: len(prefix), length: n, masks: make([]uint64, blocks)}
	for i := range d.messages {
		m := make([]byte, blocks*sha256.BlockSize)
		copy(m, prefix)
		m[n] = 0x80
		binary.BigEndian.PutUint64(m[len(m)-length:], uint64(n)*8)
		d.messages[i] = m
	}
	for i := range d.masks {
		at := i * sha256.BlockSize
		from, to := min(max(d.prefix-at, 0), sha256.BlockSize), min(max(n-at, 0), sha256.BlockSize)
		d.masks[i] = 1<<to - 1<<from // up to 1<<64, which is 0
	}
	return d
}

// Sum sets the first of dst to the digests of the messages of these bodies; it may write the others.
func (d *Digests) Sum(dst *[DigestLanes][sha256.Size]byte, bodies [][]byte) {
	size := d.length - d.prefix
	if hasSHA256x16 && len(bodies) >= fewestLanes && size > 0 {
		var at [DigestLanes]*byte
		for i := range at {
			at[i] = &bodies[min(i, len(bodies)-1)][:size][0]
		}
		sha256x16(dst, &at, &d.messages[0][0], &d.masks[0], d.prefix, len(d.masks))
		return
	}
	for at := 0; at < len(bodies); at += 2 {
		pair := bodies[at:min(at+2, len(bodies))]
		for i, body := range pair {
			copy(d.messages[i][d.prefix:d.length], body[:size])
		}
		if hasSHA256x2 && len(pair) == 2 {
			d.pair(&dst[at], &dst[at+1])
			continue
		}
		for i := range pair {
			dst[at+i] = sha256.Sum256(d.messages[i][:d.length])
		}
	}
}

// pair hashes the two messages.
func (d *Digests) pair(x, y *[sha256.Size]byte) {
	var states [2][8]uint32
	for word, at := range pairOrder {
		states[0][at], states[1][at] = initial[word], initial[word]
	}
	sha256x2(&states, &d.messages[0][0], &d.messages[1][0], len(d.masks))
	for word, at := range pairOrder {
		binary.BigEndian.PutUint32(x[4*word:], states[0][at])
		binary.BigEndian.PutUint32(y[4*word:], states[1][at])
	}
}
