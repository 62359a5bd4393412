package store

import (
	"fmt"
	"io"
	"testing"
)

func BenchmarkPut(b *testing.B) {
	for _, size := range []int{4 << 10, 1 << 20, 64 << 20} {
		b.Run(fmt.Sprint(size>>10, "KiB"), func(b *testing.B) {
			s := open(b, b.TempDir(), 1<<40)
			blob := noise(1, size)
			b.SetBytes(int64(size))
			for i := 0; b.Loop(); i++ {
				for at := 0; at < size; at += BlockSize {
					blob[at], blob[at+1], blob[at+2] = byte(i), byte(i>>8), byte(i>>16)
				}
				r := mustPut(b, s, "", blob)
				b.StopTimer()
				if err := s.Delete(r); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

func BenchmarkGet(b *testing.B) {
	for _, size := range []int{4 << 10, 1 << 20, 64 << 20} {
		b.Run(fmt.Sprint(size>>10, "KiB"), func(b *testing.B) {
			s := open(b, b.TempDir(), 1<<40)
			r := mustPut(b, s, "", noise(1, size))
			b.SetBytes(int64(size))
			for b.Loop() {
				in, err := s.Get(r)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
