package cpu

import (
	"math/rand/v2"
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
)

// chain is the definition of a contraction's element, over slices.
func chain(a, b []float32) float32 {
	acc := float32(0)
	for i, x := range a {
		acc = tensor.FMA(x, b[i], acc)
	}
	return acc
}

// Outputs of several pieces, with edges that fill no tile, on several threads.
func TestPiecesTile(t *testing.T) {
	for _, c := range [][3]int{{130, 40, 260}, {257, 300, 3}, {3, 300, 257}, {1, 1000, 70}, {70, 1000, 1}, {2, 9000, 2}, {33, 520, 65}} {
		m, k, n := c[0], c[1], c[2]
		r := rand.New(rand.NewPCG(1, uint64(m)))
		x := tensor.Must(tensor.New(tensor.Float32, tensor.Shape{m, k}))
		y := tensor.Must(tensor.New(tensor.Float32, tensor.Shape{n, k}))
		a, b := tensor.Of[float32](x), tensor.Of[float32](y)
		for _, s := range [][]float32{a, b} {
			for i := range s {
				s[i] = float32(r.NormFloat64())
			}
		}
		p := matmul(m, k, n)
		p.Args[1] = tensor.Access{Type: tensor.Float32, Shape: tensor.Shape{n, k}, Dims: []tensor.Dim{axis(1), axis(2)}}
		for _, set := range asm.Sets() {
			got := tensor.Of[float32](runOn(t, set, 2, p, x, y))
			for i := range m {
				for j := range n {
					want := float32(0)
					for t := 0; t < k; t += 2 * tensor.KBlock { // at most three K-blocks
						lo, mid, hi := t, min(t+tensor.KBlock, k), min(t+2*tensor.KBlock, k)
						part := chain(a[i*k+lo:i*k+mid], b[j*k+lo:j*k+mid])
						if hi > mid {
							part += chain(a[i*k+mid:i*k+hi], b[j*k+mid:j*k+hi])
						}
						if t == 0 {
							want = part
						} else {
							want += part
						}
					}
					if got[i*n+j] != want {
						t.Fatalf("%s, %v: element %d,%d is %x, want %x", set.Name, c, i, j, got[i*n+j], want)
					}
				}
			}
		}
	}
}
