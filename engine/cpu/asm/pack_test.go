package asm

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestTranspose8(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for _, s := range Sets() {
		for blocks := 1; blocks < 4; blocks++ {
			terms, step := TransposeRows*blocks, TransposeRows+blocks-1
			src, dst := values(r, 9*terms, false), make([]float32, terms*step)
			rows := [TransposeRows]int(r.Perm(TransposeRows))
			for i := range rows {
				rows[i] = rows[i]*terms + r.IntN(3)
			}
			s.Transpose8(blocks, &dst[0], 4*step, &src[0], &rows)
			for i, x := range dst {
				want := float32(0)
				if i%step < TransposeRows {
					want = src[rows[i%step]+i/step]
				}
				if x != want {
					t.Fatalf("%s, %d blocks: element %d is %v, want %v", s.Name, blocks, i, x, want)
				}
			}
		}
	}
}

func TestGather(t *testing.T) {
	testPatch(t, 1, func(s *KernelSet) GatherKernel { return s.Gather })
	testPatch(t, 2, func(s *KernelSet) GatherKernel { return s.GatherStride2 })
	testPatch(t, -1, func(s *KernelSet) GatherKernel { return s.GatherReversed })
}

// testPatch takes lanes that lie so many steps apart.
func testPatch(t *testing.T, step int, kernel func(*KernelSet) GatherKernel) {
	r := rand.New(rand.NewPCG(1, 4))
	for _, s := range Sets() {
		for range 200 {
			if kernel(s) == nil {
				break
			}
			times, n, lanes := 1+r.IntN(3), 1+r.IntN(4), s.Lanes
			src := values(r, 64, false)
			at := make([]int, 2*times)
			for i := range at {
				at[i] = r.IntN(5)
			}
			pitch := n * lanes
			dst, want := values(r, times*pitch+lanes, false), make([]float32, times*pitch)
			segments := make([]MaskedSegment, n)
			for i := range segments {
				segments[i] = MaskedSegment{r.IntN(60-4) - 4, i*lanes - i, r.IntN(1 << lanes)} // each overlaps the next by one
				for lane := range lanes {
					if x := segments[i][0] + step*lane; x < 0 || x >= 60 {
						segments[i][2] &^= 1 << lane
					}
				}
				for line := range times {
					for lane := range lanes {
						x := float32(0)
						if segments[i][2]>>lane&1 != 0 {
							x = src[at[2*line]+segments[i][0]+step*lane]
						}
						want[line*pitch+segments[i][1]+lane] = x
					}
				}
			}
			for line := range times {
				copy(want[line*pitch+pitch-n+1:][:n-1], dst[line*pitch+pitch-n+1:])
			}
			kernel(s)(times, &dst[0], 4*pitch, &src[0], &at[0], 16, &segments[0], n)
			for i := range want {
				if dst[i] != want[i] {
					t.Fatalf("%s, %d steps: element %d is %v, want %v", s.Name, step, i, dst[i], want[i])
				}
			}
		}
	}
}

func TestDeinterleave(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 7))
	for _, s := range Sets() {
		for range 200 {
			if s.Deinterleave == nil {
				break
			}
			times, n := 1+r.IntN(3), 1+r.IntN(4)
			src, at := values(r, 64, false), make([]int, 2*times)
			for i := range at {
				at[i] = r.IntN(5)
			}
			pitch, apart := n*s.Lanes+r.IntN(3), 3*(n*s.Lanes+3)+r.IntN(3)
			dst := values(r, 2*apart, false)
			want, segments := append([]float32(nil), dst...), make([]MaskedSegment, n)
			for i := range segments {
				segments[i] = MaskedSegment{r.IntN(60) - 4, i * s.Lanes, r.IntN(1 << (2 * s.Lanes))}
				for lane := range 2 * s.Lanes {
					if x := segments[i][0] + lane; x < 0 || x >= 60 {
						segments[i][2] &^= 1 << lane
					}
					for line := range times {
						x := float32(0)
						if segments[i][2]>>lane&1 != 0 {
							x = src[at[2*line]+segments[i][0]+lane]
						}
						want[lane%2*apart+line*pitch+segments[i][1]+lane/2] = x
					}
				}
			}
			s.Deinterleave(times, &dst[0], 4*pitch, 4*apart, &src[0], &at[0], 16, &segments[0], n)
			for i := range want {
				if dst[i] != want[i] {
					t.Fatalf("%s, %d segments of %d lines: element %d is %v, want %v", s.Name, n, times, i, dst[i], want[i])
				}
			}
		}
	}
}

func TestMinMagnitudeAndMaxSize(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	for _, s := range Sets() {
		for range 100 {
			x := values(r, s.Lanes*(1+r.IntN(3)), true)
			least, greatest := uint32(1<<32-1), uint32(0)
			for _, v := range x {
				least, greatest = min(least, Magnitude(v)), max(greatest, Size(v))
			}
			if got := s.MinMagnitude(len(x)/s.Lanes, &x[0]); got != least {
				t.Fatalf("%s: least %#x, want %#x of %v", s.Name, got, least, x)
			}
			if got := s.MaxSize(len(x)/s.Lanes, &x[0]); got != greatest {
				t.Fatalf("%s: greatest %#x, want %#x of %v", s.Name, got, greatest, x)
			}
		}
	}
}

func TestInterleaveBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 6))
	for _, s := range Sets() {
		if s.InterleaveBytes == nil {
			continue
		}
		for range 50 {
			groups, blocks := 1+r.IntN(3), 1+r.IntN(3)
			width := 16*blocks + r.IntN(3)
			src, dst, at := make([]byte, 100+width), make([]float32, groups*width), make([]int, 4*groups)
			for i := range src {
				src[i] = byte(r.Uint32())
			}
			for i := range at {
				at[i] = r.IntN(100)
			}
			const flip = 0x80808080
			s.InterleaveBytes(groups, &dst[0], 4*width, &src[0], &at[0], blocks, flip)
			for g := range groups {
				for j := range 16 * blocks {
					want := uint32(flip)
					for i := range 4 {
						want ^= uint32(src[at[4*g+i]+j]) << (8 * i)
					}
					if got := math.Float32bits(dst[g*width+j]); got != want {
						t.Fatalf("group %d, column %d is %#x, want %#x", g, j, got, want)
					}
				}
			}
		}
	}
}
