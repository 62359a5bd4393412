package quant

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/tally-network/tally/core/tensor"
)

// blockElements is how many elements a block of the types has that Encode gives.
const blockElements = 32

// encoders write a block of elements, all finite, into zeros.
var encoders = map[Type]func(dst []byte, x *[blockElements]float32){
	Q4_0: encodeQ4_0, Q4_1: encodeQ4_1, Q5_0: encodeQ5_0, Q5_1: encodeQ5_1, Q8_0: encodeQ8_0,
}

// Encodes reports whether Encode gives blocks of t: Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0.
func (t Type) Encodes() bool { return encoders[t] != nil }

// Encode writes the blocks that elements become. Each depends on its 32 elements alone, bit for bit. It fails for a type that it does not give,
// for elements that are no whole blocks, or that are infinite or NaN, and where a scale is beyond float16.
//
// A block's scale is what the element of greatest size, or the range of all, is of the greatest integer: d in float32, which is stored as the nearest
// float16. Elements are multiplied by 1/d, of float32, and rounded: to the nearest, halves away from zero, in Q8_0; and down after a half was
// added, in the others. That is ggml's reference, with each operation rounded once. Compilers that fuse the product with the sum after it
// differ where a value is within one rounding of a half.
func (t Type) Encode(dst []byte, src []float32) error {
	encode, size := encoders[t], t.of().size
	switch {
	case encode == nil:
		return fmt.Errorf("%v is no type that weights are quantised to: use Q8_0, Q5_1, Q5_0, Q4_1 or Q4_0", t)
	case len(src)%blockElements != 0 || len(dst) != len(src)/blockElements*size:
		return fmt.Errorf("%d elements are no blocks of %v in %d bytes", len(src), t, len(dst))
	}
	for i := range len(src) / blockElements {
		x := (*[blockElements]float32)(src[i*blockElements:])
		for _, v := range x {
			if math.IsInf(float64(v), 0) || v != v {
				return errors.New("an element is infinite or NaN: the weights are damaged")
			}
		}
		b := dst[i*size : (i+1)*size]
		clear(b)
		encode(b, x)
		for _, at := range t.of().scales {
			if !finite(b[at+1]) {
				return fmt.Errorf("a scale of block %d is beyond float16: these weights cannot be %v", i, t)
			}
		}
	}
	return nil
}

// putHalf stores the float16 that is nearest to v; of two, the even one.
func putHalf(dst []byte, v float32) {
	binary.LittleEndian.PutUint16(dst, uint16(tensor.FloatWord(tensor.Float16, float64(v))))
}

// inverse is 1/d, or 0 where that is no number: such blocks have a scale of 0 as float16.
func inverse(d float32) float32 {
	if d == 0 || math.IsInf(float64(1/d), 0) {
		return 0
	}
	return 1 / d
}

// greatest returns the element of greatest size; of equals the first.
func greatest(x *[blockElements]float32) (v float32) {
	for _, e := range x {
		if abs(e) > abs(v) {
			v = e
		}
	}
	return v
}

func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

// spread returns the least element and the greatest.
func spread(x *[blockElements]float32) (least, most float32) {
	least, most = x[0], x[0]
	for _, e := range x[1:] {
		if e < least {
			least = e
		}
		if e > most {
			most = e
		}
	}
	return least, most
}

// step is (x − from)·by + half, without its fraction, and at most top.
func step(x, from, by, half float32, top int) byte {
	return byte(min(int(float32(float32(x-from)*by)+half), top))
}

func encodeQ4_0(dst []byte, x *[blockElements]float32) {
	d := greatest(x) / -8
	by := inverse(d)
	putHalf(dst, d)
	for i := range blockElements / 2 {
		dst[2+i] = step(x[i], 0, by, 8.5, 15) | step(x[16+i], 0, by, 8.5, 15)<<4
	}
}

func encodeQ4_1(dst []byte, x *[blockElements]float32) {
	least, most := spread(x)
	d := float32(most-least) / 15
	by := inverse(d)
	putHalf(dst, d)
	putHalf(dst[2:], least)
	for i := range blockElements / 2 {
		dst[4+i] = step(x[i], least, by, 0.5, 15) | step(x[16+i], least, by, 0.5, 15)<<4
	}
}

func encodeQ5_0(dst []byte, x *[blockElements]float32) {
	d := greatest(x) / -16
	putHalf(dst, d)
	putFives(dst[2:], x, 0, inverse(d), 16.5)
}

func encodeQ5_1(dst []byte, x *[blockElements]float32) {
	least, most := spread(x)
	d := float32(most-least) / 31
	putHalf(dst, d)
	putHalf(dst[2:], least)
	putFives(dst[4:], x, least, inverse(d), 0.5)
}

// putFives stores integers of five bits: the fifth bits first, in one word, then the other four as Q4_0 has them.
func putFives(dst []byte, x *[blockElements]float32, from, by, half float32) {
	fifth := uint32(0)
	for i := range blockElements / 2 {
		a, b := step(x[i], from, by, half, 31), step(x[16+i], from, by, half, 31)
		fifth |= uint32(a>>4)<<i | uint32(b>>4)<<(16+i)
		dst[4+i] = a&15 | b&15<<4
	}
	binary.LittleEndian.PutUint32(dst, fifth)
}

func encodeQ8_0(dst []byte, x *[blockElements]float32) {
	d := abs(greatest(x)) / 127
	by := inverse(d)
	putHalf(dst, d)
	for i, e := range x {
		dst[2+i] = byte(int8(away(float32(e * by))))
	}
}

// away rounds to the nearest integer, halves away from zero.
func away(x float32) int {
	n := int(x) // towards zero
	switch rest := x - float32(n); {
	case rest >= 0.5:
		n++
	case rest <= -0.5:
		n--
	}
	return n
}
