package asm

import (
	"math"
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
)

// Generic is the set in plain Go.
var Generic = &Set{
	Name: "generic", Has: true,
	Lanes: genericLanes, Tiles: [][]Tile{{genericTile}}, Turn: genericTurn, Patch: genericPatch, Least: genericLeast, Greatest: genericGreatest,
	Flow: genericFlow,
}

const genericLanes = 8

// genericTile advances tiles of one row.
func genericTile(tiles, terms int, a *float32, _ int, aAt *int, b *float32, bNext int, bAt *int, c *float32, _ int, add bool) {
	for i := range tiles {
		to := (*[genericLanes]float32)(unsafe.Add(unsafe.Pointer(c), 4*genericLanes*i))
		genericChains(terms, a, aAt, (*float32)(unsafe.Add(unsafe.Pointer(b), i*bNext)), bAt, to, add)
	}
}

// genericChains advances the chains of one tile. A product of two float32 is exact in
// float64, and rounding a sum to float64 and then to float32 is rounding once,
// unless the first sum looks like a tie or lies among the subnormals: see
// tensor.FMA. Chains are written out because the compiler keeps only named
// variables in registers; eight of them hide the latency of one.
//
// float: products are exact
func genericChains(terms int, a *float32, aAt *int, b *float32, bAt *int, chains *[genericLanes]float32, add bool) {
	if !add {
		*chains = [genericLanes]float32{}
	}
	c0, c1, c2, c3 := float64(chains[0]), float64(chains[1]), float64(chains[2]), float64(chains[3])
	c4, c5, c6, c7 := float64(chains[4]), float64(chains[5]), float64(chains[6]), float64(chains[7])
	from := unsafe.Slice(aAt, terms)
	for t, at := range unsafe.Slice(bAt, terms) {
		x := float64(*(*float32)(unsafe.Add(unsafe.Pointer(a), from[t])))
		y := (*[genericLanes]float32)(unsafe.Add(unsafe.Pointer(b), at))
		c0 = fma(x, y[0], c0)
		c1 = fma(x, y[1], c1)
		c2 = fma(x, y[2], c2)
		c3 = fma(x, y[3], c3)
		c4 = fma(x, y[4], c4)
		c5 = fma(x, y[5], c5)
		c6 = fma(x, y[6], c6)
		c7 = fma(x, y[7], c7)
	}
	for i, x := range [genericLanes]float64{c0, c1, c2, c3, c4, c5, c6, c7} {
		chains[i] = tensor.CanonNaN(float32(x))
	}
}

// fma is x·y + c, all of them float32 values, rounded once to float32.
//
// float: products are exact
func fma(x float64, y float32, c float64) float64 {
	s := x*float64(y) + c
	if u := math.Float64bits(s); uint32(u)<<3 == 1<<31 || u<<1-1 < (1023-126)<<53-1 {
		return float64(tensor.FMA(float32(x), y, float32(c))) // a tie, or below 2⁻¹²⁶ and not 0
	}
	return float64(float32(s))
}

func genericTurn(blocks int, dst *float32, dstStep int, src *float32, rows *[TurnRows]int) {
	for t := range TurnRows * blocks {
		to := (*[TurnRows]float32)(unsafe.Add(unsafe.Pointer(dst), t*dstStep))
		for r, at := range rows {
			to[r] = *(*float32)(unsafe.Add(unsafe.Pointer(src), 4*(at+t)))
		}
	}
}

func genericPatch(times int, dst *float32, dstStep int, src *float32, at *int, atStep int, segments *Segment, n int) {
	for line := range times {
		base := *(*int)(unsafe.Add(unsafe.Pointer(at), line*atStep))
		for _, s := range unsafe.Slice(segments, n) {
			to := (*[genericLanes]float32)(unsafe.Add(unsafe.Pointer(dst), line*dstStep+4*s[1]))
			for i := range to {
				to[i] = 0
				if s[2]>>i&1 != 0 {
					to[i] = *(*float32)(unsafe.Add(unsafe.Pointer(src), 4*(base+s[0]+i)))
				}
			}
		}
	}
}

func genericLeast(vectors int, x *float32) uint32 {
	least := uint32(math.MaxUint32)
	for _, v := range unsafe.Slice(x, vectors*genericLanes) {
		least = min(least, Magnitude(v))
	}
	return least
}

func genericGreatest(vectors int, x *float32) uint32 {
	greatest := uint32(0)
	for _, v := range unsafe.Slice(x, vectors*genericLanes) {
		greatest = max(greatest, Size(v))
	}
	return greatest
}

func genericFlow(rows, lines, width, gap, xLine, xRow int, dst, x *float32, steps *byte, n int) {
	var part [256]float32 // dst may be what a later step reads
	for line := range rows * lines {
		row := line / lines
		for done, at := 0, line*4*width+row*gap; done < width; done, at = done+len(part), at+4*len(part) {
			v := part[:min(len(part), width-done)]
			copy(v, unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(x), at+line*xLine+row*xRow)), len(v)))
			for _, s := range unsafe.Slice((*Step)(unsafe.Pointer(steps)), n) {
				if s.Fn%2 == 1 {
					flowBeside(s.Fn, v, unsafe.Slice((*float32)(unsafe.Add(s.At, at)), len(v)))
				} else {
					flowBy(s.Fn, v, *(*float32)(unsafe.Add(s.At, 4*(row&s.Row))))
				}
			}
			for i, y := range v {
				v[i] = tensor.CanonNaN(y)
			}
			copy(unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(dst), at)), len(v)), v)
		}
	}
}

// flowBeside and flowBy are one step, of which Go's own maximum and minimum are
// those of the definition.
func flowBeside(fn int, v, y []float32) {
	for i, y := range y[:len(v)] {
		flowBy(fn&^1, v[i:i+1], y)
	}
}

func flowBy(fn int, v []float32, y float32) {
	switch fn {
	case FlowAdd:
		for i := range v {
			v[i] += y
		}
	case FlowSub:
		for i := range v {
			v[i] -= y
		}
	case FlowLess:
		for i := range v {
			v[i] = y - v[i]
		}
	case FlowMul:
		for i := range v {
			v[i] = float32(v[i] * y)
		}
	case FlowDiv:
		for i := range v {
			v[i] /= y
		}
	case FlowMax:
		for i := range v {
			v[i] = max(v[i], y)
		}
	case FlowMin:
		for i := range v {
			v[i] = min(v[i], y)
		}
	}
}
