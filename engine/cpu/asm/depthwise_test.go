package asm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tally-network/tally/core/tensor"
)

// Depthwise kernels give the chains that tensor.FMA gives, write nothing but their
// positions, and tell of zeros and NaNs.
func TestDepthwiseEqualsFMA(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 5))
	for _, s := range Sets() {
		if s.Depthwise == nil {
			continue
		}
		for positions := 1; positions < 24; positions++ {
			for round := range 12 {
				checkDepthwise(t, r, s, positions, round%2 == 0)
			}
		}
	}
}

func checkDepthwise(t *testing.T, r *rand.Rand, s *KernelSet, positions int, wild bool) {
	t.Helper()
	taps, xStep := 1+r.IntN(12), r.IntN(3*s.Lanes)
	at := make([]int, taps)
	for i := range at {
		at[i] = 4 * r.IntN(60)
	}
	w, x := values(r, taps*s.Lanes, wild), values(r, 60+positions*xStep+s.Lanes, wild)
	size := positions * s.Lanes
	got, want := make([]float32, size+3), make([]float32, size+3)
	for i := range want {
		got[i], want[i] = 7, 7
	}
	doubtful := false
	for i := range positions {
		for j := range s.Lanes {
			acc := float32(0)
			for k, from := range at {
				acc = tensor.FMA(w[k*s.Lanes+j], x[i*xStep+from/4+j], acc)
			}
			doubtful = doubtful || acc == 0 || acc != acc
			want[i*s.Lanes+j] = tensor.CanonNaN(acc)
		}
	}
	if found := s.Depthwise(positions, taps, &w[0], &x[0], 4*xStep, &at[0], &got[0]); (found != 0) != doubtful {
		t.Fatalf("%s, %d positions: tells %d, and there are zeros or NaNs: %v", s.Name, positions, found, doubtful)
	}
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s, %d positions, %d taps: element %d is %v, not %v", s.Name, positions, taps, i, got[i], want[i])
		}
	}
}

func BenchmarkDepthwise(b *testing.B) {
	for _, s := range Sets() {
		if s.Depthwise == nil {
			continue
		}
		for _, kernel := range []int{3, 5} {
			const width = 14
			taps := kernel * kernel
			w, x, c := make([]float32, taps*s.Lanes), make([]float32, kernel*(width+kernel)*s.Lanes), make([]float32, width*s.Lanes)
			at := make([]int, taps)
			for t := range at {
				at[t] = 4 * s.Lanes * (t/kernel*(width+kernel-1) + t%kernel)
			}
			b.Run(fmt.Sprintf("%s/%d×%d", s.Name, kernel, kernel), func(b *testing.B) {
				for b.Loop() {
					s.Depthwise(width, taps, &w[0], &x[0], 4*s.Lanes, &at[0], &c[0])
				}
				b.ReportMetric(float64(2*s.Lanes*width*taps)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}
