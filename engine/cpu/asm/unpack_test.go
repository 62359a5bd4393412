package asm

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tally-network/tally/core/quant"
)

// Rows of blocks are unpacked to the bits of their definition, whatever the bytes, and nothing is written beside them.
func TestUnpack(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	special := []uint16{0, 0x8000, 1, 0x8001, 0x03ff, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7c01, 0xfe00}
	for _, s := range Sets() {
		for of, unpack := range s.Unpack {
			elements, size := unit(of)
			for range 100 {
				blocks, rows := 1+r.IntN(4), s.Lanes
				pitch, width := blocks*size+r.IntN(3), rows+r.IntN(2)*rows
				src := make([]byte, (rows-1)*pitch+blocks*size)
				for i := range src {
					src[i] = byte(r.Uint32())
				}
				for row := range rows {
					for b := range blocks {
						if at := row*pitch + b*size; r.IntN(3) == 0 {
							h := special[r.IntN(len(special))]
							for _, scale := range []int{0, 2, 208} {
								if scale+2 <= size && (scale < 4 || size == 210) {
									src[at+scale], src[at+scale+1] = byte(h), byte(h>>8)
								}
							}
						}
					}
				}
				dst := make([]float32, blocks*elements*width)
				for i := range dst {
					dst[i] = 77
				}
				unpack(blocks, &dst[0], 4*width, &src[0], pitch, 0)
				want := make([]float32, blocks*elements)
				for row := range rows {
					of.Decode(want, src[row*pitch:][:blocks*size])
					for i, w := range want {
						if got := dst[i*width+row]; math.Float32bits(got) != math.Float32bits(w) {
							t.Fatalf("%s, %v: element %d of row %d is %#x, want %#x", s.Name, of, i, row, math.Float32bits(got), math.Float32bits(w))
						}
					}
				}
				for i, x := range dst {
					if i%width >= rows && x != 77 {
						t.Fatalf("%s, %v: %v was written beside", s.Name, of, x)
					}
				}
			}
		}
	}
}

// unit returns the elements and bytes that a kernel takes for a block.
func unit(of quant.Type) (elements, size int) {
	if elements, size = of.Block(); elements == 1 {
		return UnpackHalves, UnpackHalves * size
	}
	return elements, size
}

func BenchmarkUnpack(b *testing.B) {
	for _, s := range Sets() {
		for of, unpack := range s.Unpack {
			b.Run(s.Name+"/"+of.String(), func(b *testing.B) {
				elements, size := unit(of)
				const blocks = 4
				src, dst := make([]byte, s.Lanes*blocks*size), make([]float32, blocks*elements*48)
				for b.Loop() {
					unpack(blocks, &dst[0], 4*48, &src[0], blocks*size, 0)
				}
				b.ReportMetric(float64(s.Lanes*blocks*elements*b.N)/float64(b.Elapsed().Nanoseconds()), "elements/ns")
			})
		}
	}
}
