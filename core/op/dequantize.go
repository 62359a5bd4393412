package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/quant"
	"github.com/tally-network/tally/core/tensor"
)

// Blocks of quantised weights as float32: the meaning that package quant gives them, in primitives. A block
// becomes axes of its own, and the order of operations is that of quant's decoders.

var _ = define(
	lower.Operator{Name: "Dequantize", Min: 1, Max: 1, Outputs: 1, Lower: lowerDequantize, Attrs: []graph.Attr{graph.Int("type", 0)}, Deferred: true},
)

// unpackers unpack blocks, bytes [rows, blocks, size], by type. The elements have the blocks' axes, and then any that
// come to a block's elements.
var unpackers = map[quant.Type]func(u *unpacker, blocks lower.View) lower.View{
	quant.F32: unpackF32, quant.F16: unpackHalf(tensor.Float16), quant.BF16: unpackHalf(tensor.BFloat16),
	quant.Q4_0: unpackQ4_0, quant.Q4_1: unpackQ4_1, quant.Q5_0: unpackQ5_0, quant.Q5_1: unpackQ5_1, quant.Q8_0: unpackQ8_0,
	quant.Q4_K: unpackQ4_K, quant.Q5_K: unpackQ5_K, quant.Q6_K: unpackQ6_K, quant.IQ4_NL: unpackIQ4_NL,
}

func lowerDequantize(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	n, s := c.Int("type"), c.In[0].Shape
	t := quant.Type(n)
	if int(t) != n || !t.Valid() {
		return nil, fmt.Errorf("type %d is no type of weights that is known; use one of %v, by ggml's number", n, quant.Types)
	}
	if err := wantType(c, 0, tensor.Uint8); err != nil {
		return nil, err
	}
	elements, size := t.Block()
	if len(s) == 0 || s[len(s)-1]%size != 0 {
		return nil, fmt.Errorf("input %q of shape %v has no rows of whole blocks of %v, which take %d bytes", c.Inputs[0], s, t, size)
	}
	rows, bytes := s.Matrix()
	out := s.Clone()
	out[len(s)-1] = bytes / size * elements
	u := &unpacker{e: e}
	v := u.shaped(c.In[0], rows, bytes/size, size)
	if rows*bytes > 0 && u.err == nil {
		v = unpackers[t](u, v)
	} else {
		v = u.cast(v, tensor.Float32)
	}
	return one(u.shaped(v, out...), u.err)
}

// unpacker emits primitives, up to the first error.
type unpacker struct {
	e   *lower.Emitter
	err error
}

func (u *unpacker) got(v lower.View, err error) lower.View {
	if u.err == nil {
		u.err = err
	}
	return v
}

func (u *unpacker) do(fn tensor.Fn, t tensor.DType, in ...lower.View) lower.View {
	if u.err != nil {
		return lower.View{}
	}
	return u.got(u.e.Map(fn, t, in...))
}

func (u *unpacker) cast(v lower.View, t tensor.DType) lower.View { return u.do(tensor.Cast, t, v) }

// shaped is v in another shape.
func (u *unpacker) shaped(v lower.View, s ...int) lower.View {
	if u.err != nil {
		return lower.View{}
	}
	return u.got(u.e.Reshape(v, s))
}

// inBlock is v with other axes behind those of rows and blocks.
func (u *unpacker) inBlock(v lower.View, s ...int) lower.View {
	if u.err != nil {
		return lower.View{}
	}
	return u.shaped(v, slices.Concat(v.Shape[:2], s)...)
}

// part is n places of the last axis, from one on.
func (u *unpacker) part(v lower.View, from, n int) lower.View {
	if u.err != nil {
		return lower.View{}
	}
	v = u.got(u.e.Affine(v))
	if u.err != nil {
		return lower.View{}
	}
	return v.Sliced(len(v.Shape)-1, from, 1, n)
}

// integers is a constant of the type of v, of some shape.
func (u *unpacker) integers(t tensor.DType, s tensor.Shape, v ...int) lower.View {
	x := tensor.Must(tensor.New(t, s))
	for i, w := range v {
		x.Set(i, tensor.Word(w))
	}
	return u.e.Const(x)
}

func (u *unpacker) byte(v int) lower.View { return u.integers(tensor.Uint8, tensor.Shape{}, v) }

func (u *unpacker) float(v float64) lower.View { return u.e.Const(floatOf(tensor.Float32, v)) }

func (u *unpacker) and(v lower.View, mask int) lower.View {
	return u.do(tensor.BitAnd, tensor.Uint8, v, u.byte(mask))
}

func (u *unpacker) left(v lower.View, by int) lower.View {
	return u.do(tensor.ShiftLeft, tensor.Uint8, v, u.byte(by))
}

func (u *unpacker) or(x, y lower.View) lower.View { return u.do(tensor.BitOr, tensor.Uint8, x, y) }

// shifted is each byte of the last axes, shifted right by 0, step, 2·step … n times. The shifts are an axis, before so many
// others: parts of a block whose bits share bytes follow each other.
func (u *unpacker) shifted(v lower.View, n, step, before int) lower.View {
	if u.err != nil {
		return lower.View{}
	}
	at := len(v.Shape) - before
	v = u.shaped(v, slices.Insert(v.Shape.Clone(), at, 1)...)
	shifts, s := make([]int, n), make(tensor.Shape, before+1)
	for i := range shifts {
		shifts[i] = i * step
	}
	for i := range s {
		s[i] = 1
	}
	s[0] = n
	return u.do(tensor.ShiftRight, tensor.Uint8, v, u.integers(tensor.Uint8, s, shifts...))
}

// floats joins pairs of bytes, the lower first, to floats of 16 bits, and widens them: [rows, blocks, n].
func (u *unpacker) floats(pairs lower.View, of tensor.DType) lower.View {
	if u.err != nil {
		return lower.View{}
	}
	n := pairs.Shape[2] / 2
	words := u.cast(u.inBlock(pairs, n, 2), tensor.Uint16)
	high := u.do(tensor.ShiftLeft, tensor.Uint16, u.part(words, 1, 1), u.integers(tensor.Uint16, tensor.Shape{}, 8))
	words = u.do(tensor.BitOr, tensor.Uint16, u.part(words, 0, 1), high)
	return u.inBlock(u.cast(u.do(tensor.Bits, of, words), tensor.Float32), n)
}

// scales is the n scales that begin at a byte of a block: [rows, blocks, n]. One that is not finite is NaN, so that all that
// it scales is: x + x·0 is x, or NaN.
func (u *unpacker) scales(blocks lower.View, from, n int) lower.View {
	x := u.floats(u.part(blocks, from, 2*n), tensor.Float16)
	return u.do(tensor.Add, tensor.Float32, x, u.do(tensor.Mul, tensor.Float32, x, u.float(0)))
}

// scaled is integers of 8 bits, less what stands for 0, times a scale.
func (u *unpacker) scaled(q lower.View, zero float64, scale lower.View) lower.View {
	x := u.cast(q, tensor.Float32)
	if zero != 0 {
		x = u.do(tensor.Sub, tensor.Float32, x, u.float(zero))
	}
	return u.do(tensor.Mul, tensor.Float32, x, scale)
}

// fours is the halves of n bytes from one on: [rows, blocks, 2, n], the lower ones first.
func (u *unpacker) fours(blocks lower.View, from, n int) lower.View {
	return u.and(u.shifted(u.part(blocks, from, n), 2, 4, 1), 15)
}

// fives is fours with a bit more each, which are those of a word of four bytes.
func (u *unpacker) fives(blocks lower.View, word, from int) lower.View {
	bits := u.inBlock(u.part(blocks, word, 4), 4, 1)
	high := u.left(u.and(u.do(tensor.ShiftRight, tensor.Uint8, bits, u.integers(tensor.Uint8, tensor.Shape{8}, 0, 1, 2, 3, 4, 5, 6, 7)), 1), 4)
	return u.or(u.fours(blocks, from, 16), u.inBlock(high, 2, 16))
}

func unpackF32(u *unpacker, blocks lower.View) lower.View {
	words := u.do(tensor.ShiftLeft, tensor.Uint32, u.cast(blocks, tensor.Uint32), u.integers(tensor.Uint32, tensor.Shape{4}, 0, 8, 16, 24))
	words = u.do(tensor.BitOr, tensor.Uint32, u.part(words, 0, 2), u.part(words, 2, 2))
	return u.do(tensor.Bits, tensor.Float32, u.do(tensor.BitOr, tensor.Uint32, u.part(words, 0, 1), u.part(words, 1, 1)))
}

func unpackHalf(of tensor.DType) func(*unpacker, lower.View) lower.View {
	return func(u *unpacker, blocks lower.View) lower.View {
		return u.floats(u.shaped(blocks, blocks.Shape[0], 1, 2*blocks.Shape[1]), of) // a row is one block
	}
}

func unpackQ4_0(u *unpacker, blocks lower.View) lower.View {
	return u.scaled(u.fours(blocks, 2, 16), 8, u.inBlock(u.scales(blocks, 0, 1), 1, 1))
}

func unpackQ4_1(u *unpacker, blocks lower.View) lower.View {
	return u.above(blocks, u.fours(blocks, 4, 16))
}

// above is integers times the first scale of their block, plus the second.
func (u *unpacker) above(blocks, q lower.View) lower.View {
	of := u.scales(blocks, 0, 2)
	return u.do(tensor.Add, tensor.Float32, u.scaled(q, 0, u.inBlock(u.part(of, 0, 1), 1, 1)), u.inBlock(u.part(of, 1, 1), 1, 1))
}

func unpackQ5_0(u *unpacker, blocks lower.View) lower.View {
	return u.scaled(u.fives(blocks, 2, 6), 16, u.inBlock(u.scales(blocks, 0, 1), 1, 1))
}

func unpackQ5_1(u *unpacker, blocks lower.View) lower.View {
	return u.above(blocks, u.fives(blocks, 4, 8))
}

func unpackQ8_0(u *unpacker, blocks lower.View) lower.View {
	return u.scaled(u.do(tensor.Bits, tensor.Int8, u.part(blocks, 2, 32)), 0, u.scales(blocks, 0, 1))
}

func unpackIQ4_NL(u *unpacker, blocks lower.View) lower.View {
	table := tensor.Must(tensor.New(tensor.Float32, tensor.Shape{len(quant.Places)}))
	for i, v := range quant.Places {
		table.Set(i, tensor.F32(float32(v)))
	}
	q := u.fours(blocks, 2, 16)
	if u.err != nil {
		return lower.View{}
	}
	places := u.got(gather(u.e, u.e.Const(table), q.Shape, []tensor.Dim{{Via: 1}}, q.Access(lower.Axes(0, len(q.Shape)))))
	return u.do(tensor.Mul, tensor.Float32, places, u.inBlock(u.scales(blocks, 0, 1), 1, 1))
}

// parted is the elements of a block of eight parts, each with a scale and a minimum of six bits, which twelve bytes hold:
// the lower parts' in six bits of the first eight, the others' in the four of the last four and in two bits of those.
func (u *unpacker) parted(blocks, q lower.View) lower.View {
	first := u.inBlock(u.part(blocks, 4, 8), 2, 4)
	upper := u.or(u.fours(blocks, 12, 4), u.do(tensor.ShiftRight, tensor.Uint8, u.and(first, 0xc0), u.byte(2)))
	if u.err != nil {
		return lower.View{}
	}
	six := u.got(concatViews(u.e, []lower.View{u.and(first, 63), upper}, 3))
	of := u.scaled(six, 0, u.inBlock(u.scales(blocks, 0, 2), 2, 1))
	by := func(i int) lower.View {
		if u.err != nil {
			return lower.View{}
		}
		return u.inBlock(of.Sliced(2, i, 1, 1), 8, 1)
	}
	return u.do(tensor.Sub, tensor.Float32, u.scaled(u.inBlock(q, 8, 32), 0, by(0)), by(1))
}

func unpackQ4_K(u *unpacker, blocks lower.View) lower.View {
	return u.parted(blocks, u.and(u.shifted(u.inBlock(u.part(blocks, 16, 128), 4, 32), 2, 4, 1), 15))
}

func unpackQ5_K(u *unpacker, blocks lower.View) lower.View {
	four := u.and(u.shifted(u.inBlock(u.part(blocks, 48, 128), 4, 32), 2, 4, 1), 15)
	high := u.left(u.and(u.shifted(u.part(blocks, 16, 32), 8, 1, 1), 1), 4)
	return u.parted(blocks, u.or(u.inBlock(four, 8, 32), high))
}

// unpackQ6_K: the lower bits of parts 0 and 2 of half a block share bytes, so do those of 1 and 3; the higher ones of all
// four do. Sixteen elements have one scale.
func unpackQ6_K(u *unpacker, blocks lower.View) lower.View {
	low := u.and(u.shifted(u.inBlock(u.part(blocks, 0, 128), 2, 2, 32), 2, 4, 2), 15)
	high := u.left(u.and(u.shifted(u.inBlock(u.part(blocks, 128, 64), 2, 32), 4, 2, 1), 3), 4)
	q := u.or(u.inBlock(low, 2, 4, 32), high)
	of := u.scaled(u.do(tensor.Bits, tensor.Int8, u.part(blocks, 192, 16)), 0, u.scales(blocks, 208, 1))
	return u.scaled(u.inBlock(q, 16, 16), 32, u.inBlock(of, 16, 1))
}
