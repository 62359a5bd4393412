package asm

import (
	"math"
	"unsafe"

	"github.com/tally-network/tally/core/tensor"
)

// Generic is the set in plain Go.
var Generic = &KernelSet{
	Name: "generic", Has: true,
	Lanes: genericLanes, GEMM: [][]MicroKernel{{genericGEMM}}, Transpose8: genericTranspose8, Gather: genericGather, MinMagnitude: genericMinMagnitude, MaxSize: genericMaxSize,
	EltwiseChain: genericEltwiseChain, Int8: Int8Kernels{Group: 4, GEMM: [][]MicroKernel{{genericInt8QuadGEMM}}},
}

const genericLanes = 8

// genericGEMM is a MicroKernel of one row.
func genericGEMM(tiles, terms int, a *float32, _ int, aAt *int, b *float32, bNext int, bAt *int, c *float32, _ int, add bool) {
	for i := range tiles {
		to := (*[genericLanes]float32)(unsafe.Add(unsafe.Pointer(c), 4*genericLanes*i))
		genericAccumulate(terms, a, aAt, (*float32)(unsafe.Add(unsafe.Pointer(b), i*bNext)), bAt, to, add)
	}
}

// genericAccumulate advances the accumulators of one tile. A product of two float32 is exact in
// float64, and rounding a sum to float64 and then to float32 is rounding once,
// unless the first sum looks like a tie or lies among the subnormals: see
// tensor.FMA. Accumulators are written out because the compiler keeps only named
// variables in registers; eight of them hide the latency of one.
//
// float: products are exact
func genericAccumulate(terms int, a *float32, aAt *int, b *float32, bAt *int, acc *[genericLanes]float32, add bool) {
	if !add {
		*acc = [genericLanes]float32{}
	}
	c0, c1, c2, c3 := float64(acc[0]), float64(acc[1]), float64(acc[2]), float64(acc[3])
	c4, c5, c6, c7 := float64(acc[4]), float64(acc[5]), float64(acc[6]), float64(acc[7])
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
		acc[i] = tensor.CanonNaN(float32(x))
	}
}

// genericInt8QuadGEMM is a MicroKernel of one row of sums of four bytes, unsigned in a, as
// AVX-512's are. So every machine tests how operands are shifted for those.
func genericInt8QuadGEMM(tiles, terms int, a *float32, _ int, aAt *int, b *float32, bNext int, bAt *int, c *float32, _ int, add bool) {
	from, to := unsafe.Slice(aAt, terms), unsafe.Slice(bAt, terms)
	for i := range tiles {
		acc := (*[genericLanes]int32)(unsafe.Add(unsafe.Pointer(c), 4*genericLanes*i))
		if !add {
			*acc = [genericLanes]int32{}
		}
		for t, at := range to {
			x := (*[4]uint8)(unsafe.Add(unsafe.Pointer(a), from[t]))
			y := (*[genericLanes][4]int8)(unsafe.Add(unsafe.Pointer(b), i*bNext+at))
			for j := range y {
				acc[j] += int32(x[0])*int32(y[j][0]) + int32(x[1])*int32(y[j][1]) + int32(x[2])*int32(y[j][2]) + int32(x[3])*int32(y[j][3])
			}
		}
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

func genericTranspose8(blocks int, dst *float32, dstStep int, src *float32, rows *[TransposeRows]int) {
	for t := range TransposeRows * blocks {
		to := (*[TransposeRows]float32)(unsafe.Add(unsafe.Pointer(dst), t*dstStep))
		for r, at := range rows {
			to[r] = *(*float32)(unsafe.Add(unsafe.Pointer(src), 4*(at+t)))
		}
	}
}

func genericGather(times int, dst *float32, dstStep int, src *float32, at *int, atStep int, segments *MaskedSegment, n int) {
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

func genericMinMagnitude(vectors int, x *float32) uint32 {
	least := uint32(math.MaxUint32)
	for _, v := range unsafe.Slice(x, vectors*genericLanes) {
		least = min(least, Magnitude(v))
	}
	return least
}

func genericMaxSize(vectors int, x *float32) uint32 {
	greatest := uint32(0)
	for _, v := range unsafe.Slice(x, vectors*genericLanes) {
		greatest = max(greatest, Size(v))
	}
	return greatest
}

func genericEltwiseChain(rows, lines, width, gap, xLine, xRow int, dst, x *float32, ops *byte, n int) {
	var part, kept [256]float32 // dst may be what a later step reads
	for line := range rows * lines {
		row := line / lines
		for done, at := 0, line*4*width+row*gap; done < width; done, at = done+len(part), at+4*len(part) {
			v := part[:min(len(part), width-done)]
			copy(v, unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(x), at+line*xLine+row*xRow)), len(v)))
			for _, s := range unsafe.Slice((*EltwiseOp)(unsafe.Pointer(ops)), n) {
				switch {
				case s.Fn == OpKeep:
					copy(kept[:], v)
				case s.Fn == OpSwap:
					for i := range v {
						v[i], kept[i] = kept[i], v[i]
					}
				case s.At == nil:
					opWith(s.Fn, v, kept[:])
				case s.Fn%2 == 1:
					opWith(s.Fn, v, unsafe.Slice((*float32)(unsafe.Add(s.At, at+4*row*s.Row)), len(v)))
				default:
					opBy(s.Fn, v, *(*float32)(unsafe.Add(s.At, 4*(row&s.Row))))
				}
			}
			for i, y := range v {
				v[i] = tensor.CanonNaN(y)
			}
			copy(unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(dst), at)), len(v)), v)
		}
	}
}

// opWith and opBy are one op, of which Go's own maximum and minimum are
// those of the definition.
func opWith(fn int, v, y []float32) {
	for i, y := range y[:len(v)] {
		opBy(fn&^1, v[i:i+1], y)
	}
}

func opBy(fn int, v []float32, y float32) {
	switch fn {
	case OpAdd:
		for i := range v {
			v[i] += y
		}
	case OpSub:
		for i := range v {
			v[i] -= y
		}
	case OpReverseSub:
		for i := range v {
			v[i] = y - v[i]
		}
	case OpMul:
		for i := range v {
			v[i] = float32(v[i] * y)
		}
	case OpDiv:
		for i := range v {
			v[i] /= y
		}
	case OpMax:
		for i := range v {
			v[i] = max(v[i], y)
		}
	case OpMin:
		for i := range v {
			v[i] = min(v[i], y)
		}
	case OpReverseDiv:
		for i := range v {
			v[i] = y / v[i]
		}
	case OpNeg:
		for i := range v {
			v[i] = -v[i]
		}
	case OpExp, OpTanh, OpErf:
		f := map[int]func(float32) float32{OpExp: tensor.Exp, OpTanh: tensor.Tanh, OpErf: tensor.Erf}[fn]
		for i := range v {
			v[i] = f(v[i])
		}
	}
}
