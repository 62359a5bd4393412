package asm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tally-network/tally/core/tensor"
)

// Depthwise kernels give the chains that tensor.FMA gives, line by line, and write nothing
// but whole vectors of lines.
func TestDepthwiseEqualsFMA(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 5))
	for _, s := range Sets() {
		for i, run := range s.Depthwise {
			for lines := 1; lines < 18; lines++ {
				for round := range 6 {
					checkDepthwise(t, r, fmt.Sprintf("%s, %d vectors", s.Name, i+1), run, lines, (i+1)*s.Lanes, round%2 == 0)
				}
			}
		}
	}
}

func checkDepthwise(t *testing.T, r *rand.Rand, name string, run DepthwiseKernel, lines, width int, wild bool) {
	t.Helper()
	taps, wStep, xLine, cRow := 1+r.IntN(12), 1+r.IntN(3), width+r.IntN(20), 1+r.IntN(width+3)
	at := make([]int, taps)
	for i := range at {
		at[i] = 4 * r.IntN(60)
	}
	w, x := values(r, taps*wStep, wild), values(r, 60+lines*xLine+width, wild)
	size := (lines-1)*cRow + width
	got, want := make([]float32, size+3), make([]float32, size+3)
	for i := range want {
		got[i], want[i] = 7, 7
	}
	for l := range lines {
		for j := range width {
			acc := float32(0)
			for i, from := range at {
				acc = tensor.FMA(w[i*wStep], x[l*xLine+from/4+j], acc)
			}
			want[l*cRow+j] = tensor.CanonNaN(acc)
		}
	}
	run(lines, taps, &w[0], 4*wStep, &x[0], 4*xLine, &at[0], &got[0], 4*cRow)
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s, %d lines, %d taps: element %d is %v, not %v", name, lines, taps, i, got[i], want[i])
		}
	}
}

func BenchmarkDepthwise(b *testing.B) {
	for _, s := range Sets() {
		for i, run := range s.Depthwise {
			const lines, taps = 14, 9
			width := (i + 1) * s.Lanes
			w, x, c := make([]float32, taps), make([]float32, (lines+3)*(width+2)), make([]float32, lines*width)
			at := make([]int, taps)
			for t := range at {
				at[t] = 4 * (t/3*(width+2) + t%3)
			}
			b.Run(fmt.Sprintf("%s/%d", s.Name, width), func(b *testing.B) {
				for b.Loop() {
					run(lines, taps, &w[0], 4, &x[0], 4*(width+2), &at[0], &c[0], 4*width)
				}
				b.ReportMetric(float64(2*lines*width*taps)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}
