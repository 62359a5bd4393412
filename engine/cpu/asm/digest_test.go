package asm

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"testing"
)

func TestSHA256x2(t *testing.T) {
	if !HasSHA256x2() {
		t.Skip("this machine hashes one message at a time")
	}
	r := rand.New(rand.NewPCG(1, 6))
	for n := range 300 {
		a, b := make([]byte, n), make([]byte, n, n+72)
		for i := range a {
			a[i], b[i] = byte(r.Uint32()), byte(r.Uint32())
		}
		var ahead Prefetch
		if n%2 == 0 && n > 0 {
			ahead = Prefetch{&a[0], 1 << 20, n} // fetched from nowhere
		}
		x, y := SumSHA256x2(a, b, ahead)
		if x != sha256.Sum256(a) || y != sha256.Sum256(b) {
			t.Fatalf("%d bytes: %x and %x, want %x and %x", n, x, y, sha256.Sum256(a), sha256.Sum256(b))
		}
	}
}

func BenchmarkDigest(b *testing.B) {
	const n = 4096
	x, y := make([]byte, n, n+128), make([]byte, n, n+128)
	b.Run(fmt.Sprintf("one/%d", n), func(b *testing.B) {
		b.SetBytes(n)
		b.ReportAllocs()
		for b.Loop() {
			sha256.Sum256(x)
		}
	})
	b.Run(fmt.Sprintf("x2/%d", n), func(b *testing.B) {
		if !HasSHA256x2() {
			b.Skip("this machine hashes one message at a time")
		}
		b.SetBytes(2 * n)
		b.ReportAllocs()
		for b.Loop() {
			SumSHA256x2(x, y, Prefetch{})
		}
	})
}
