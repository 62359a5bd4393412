package asm

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestDigests(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 6))
	random := func(b []byte) []byte {
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	var dst [DigestLanes][sha256.Size]byte
	for n := range 300 {
		prefix := random(make([]byte, r.IntN(n+1)))
		d := NewDigests(prefix, n-len(prefix))
		bodies := make([][]byte, n%(DigestLanes+1))
		for range 2 { // what was hashed before leaves nothing behind
			for i := range bodies {
				bodies[i] = random(make([]byte, n-len(prefix)))
			}
			d.Sum(&dst, bodies)
			for i, body := range bodies {
				if want := sha256.Sum256(append(slices.Clone(prefix), body...)); dst[i] != want {
					t.Fatalf("message %d of %d, of %d bytes: %x, want %x", i, len(bodies), n, dst[i], want)
				}
			}
		}
	}
}

func BenchmarkDigest(b *testing.B) {
	var dst [DigestLanes][sha256.Size]byte
	for _, n := range []int{64, 128, 4096} {
		b.Run(fmt.Sprintf("one/%d", n), func(b *testing.B) {
			x := make([]byte, n)
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				sha256.Sum256(x)
			}
		})
		for _, lanes := range []int{2, DigestLanes} {
			b.Run(fmt.Sprintf("x%d/%d", lanes, n), func(b *testing.B) {
				d, bodies := NewDigests(nil, n), make([][]byte, lanes)
				for i := range bodies {
					bodies[i] = make([]byte, n)
				}
				b.SetBytes(int64(lanes * n))
				b.ReportAllocs()
				for b.Loop() {
					d.Sum(&dst, bodies)
				}
			})
		}
	}
}
