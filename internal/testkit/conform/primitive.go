package conform

import (
	"fmt"
	"math/rand/v2"

	"github.com/tally-network/tally/core/tensor"
)

// Functions are all functions of primitives.
var Functions = func() []tensor.Fn {
	var out []tensor.Fn
	for f := tensor.Fn(1); f.Kind() != 0; f++ {
		out = append(out, f)
	}
	return out
}()

// usual is how many elements an output has at most, for most cases.
const usual = 2000

// Primitive returns a random valid primitive that computes fn.
func Primitive(r *rand.Rand, fn tensor.Fn) *tensor.Primitive { return sized(r, fn, usual) }

// sized returns one with so many elements at most, and ten times as many terms
// in all.
func sized(r *rand.Rand, fn tensor.Fn, size int) *tensor.Primitive {
	var err error
	for range 1000 {
		p := primitive(r, fn, size)
		if err = p.Check(); err == nil {
			return p
		}
	}
	panic(fmt.Sprintf("no valid %v in 1000 tries: %v", fn, err))
}

func primitive(r *rand.Rand, fn tensor.Fn, size int) *tensor.Primitive {
	p := &tensor.Primitive{Fn: fn, Shape: shape(r, 4, size)}
	switch fn.Kind() {
	case tensor.KindMap:
		mapping(r, p)
	case tensor.KindIndex:
		indexing(r, p)
	case tensor.KindFold:
		if fn.Scatters() {
			scattering(r, p, 10*size)
		} else {
			folding(r, p, 10*size)
		}
	case tensor.KindContraction:
		contracting(r, p, 10*size)
	}
	return p
}

// shape returns a random shape of at most n elements.
func shape(r *rand.Rand, rank, n int) tensor.Shape {
	s := tensor.Shape{}
	left := max(n, 1)
	for range r.IntN(rank + 1) {
		d := [...]int{1, 1, 2, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 32, 33, 64, 100, 300, 1100}[r.IntN(19)]
		if r.IntN(60) == 0 {
			d = 0
		}
		d = min(d, left)
		s = append(s, d)
		left /= max(d, 1)
	}
	return s
}

func axes(lo, hi int) []int {
	var out []int
	for i := lo; i < hi; i++ {
		out = append(out, i)
	}
	return out
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// anyType draws the types that executors must be fast in as often as all others
// together.
func anyType(r *rand.Rand) tensor.DType {
	if r.IntN(2) == 0 {
		return pick(r, tensor.DTypes...)
	}
	return pick(r, tensor.Float32, tensor.Int32, tensor.Int64, tensor.Bool)
}

// typeThat draws a type with a property.
func typeThat(r *rand.Rand, is func(tensor.DType) bool) tensor.DType {
	for {
		if t := anyType(r); is(t) {
			return t
		}
	}
}

func numeric(r *rand.Rand) tensor.DType { return typeThat(r, tensor.DType.Numeric) }

// summed draws a type of which there are sums.
func summed(r *rand.Rand) tensor.DType {
	return typeThat(r, func(t tensor.DType) bool { return t.Numeric() && !t.Half() })
}

func mapping(r *rand.Rand, p *tensor.Primitive) {
	var in []tensor.DType
	switch p.Fn {
	case tensor.Add, tensor.Sub, tensor.Mul, tensor.Div, tensor.Max, tensor.Min, tensor.Rem:
		p.Type = numeric(r)
		in = []tensor.DType{p.Type, p.Type}
	case tensor.Neg, tensor.Abs:
		p.Type = numeric(r)
		in = []tensor.DType{p.Type}
	case tensor.Eq, tensor.Lt, tensor.Le:
		t := anyType(r)
		p.Type, in = tensor.Bool, []tensor.DType{t, t}
	case tensor.And, tensor.Or:
		p.Type, in = tensor.Bool, []tensor.DType{tensor.Bool, tensor.Bool}
	case tensor.Not:
		p.Type, in = tensor.Bool, []tensor.DType{tensor.Bool}
	case tensor.Where:
		p.Type = anyType(r)
		in = []tensor.DType{tensor.Bool, p.Type, p.Type}
	case tensor.Cast:
		p.Type, in = anyType(r), []tensor.DType{anyType(r)}
	case tensor.Narrow:
		p.Type, in = tensor.BFloat16, []tensor.DType{typeThat(r, tensor.DType.Float)}
	case tensor.Bits:
		p.Type = anyType(r)
		in = []tensor.DType{typeThat(r, func(t tensor.DType) bool { return t.Size() == p.Type.Size() })}
	case tensor.BitAnd, tensor.BitOr, tensor.BitXor, tensor.ShiftLeft, tensor.ShiftRight, tensor.Mod:
		p.Type = typeThat(r, tensor.DType.Integer)
		in = []tensor.DType{p.Type, p.Type}
	case tensor.BitNot:
		p.Type = typeThat(r, tensor.DType.Integer)
		in = []tensor.DType{p.Type}
	case tensor.SqrtF, tensor.ExpF, tensor.LogF, tensor.TanhF, tensor.Floor, tensor.Ceil, tensor.Round:
		p.Type = typeThat(r, tensor.DType.Float)
		in = []tensor.DType{p.Type}
	default:
		p.Type = typeThat(r, func(t tensor.DType) bool { return t.Float() && t != tensor.Float64 })
		in = []tensor.DType{p.Type}
	}
	for _, t := range in {
		p.Args = append(p.Args, access(r, p, t, axes(0, len(p.Shape)), false))
	}
}

func indexing(r *rand.Rand, p *tensor.Primitive) {
	p.Type = anyType(r)
	p.Imm = []tensor.Word{Tensor(r, p.Type, tensor.Shape{}).At(0)}
	over := axes(0, len(p.Shape))
	data := 1
	if p.Fn == tensor.Join {
		data += r.IntN(4)
	}
	for range data {
		p.Args = append(p.Args, access(r, p, p.Type, over, true))
	}
	if a := &p.Args[0]; p.Fn == tensor.Copy && !a.Flat {
		for d := range a.Dims {
			if r.IntN(3) == 0 {
				if r.IntN(2) == 0 { // most often the index alone says where
					a.Dims[d].Terms, a.Dims[d].Offset = nil, 0
				}
				a.Dims[d].Via = len(p.Args)
				p.Args = append(p.Args, access(r, p, typeThat(r, tensor.DType.Integer), over, false))
			}
		}
	}
}

func folding(r *rand.Rand, p *tensor.Primitive, terms int) {
	in := numeric(r)
	if p.Fn == tensor.FoldSum || p.Fn == tensor.FoldProd {
		in = summed(r)
	}
	p.Type = in
	if p.Fn == tensor.FoldArgMax {
		p.Type, p.Imm = tensor.Int64, []tensor.Word{tensor.Word(r.IntN(2))}
	}
	p.Fold = shape(r, 3, terms/max(p.Shape.Elements(), 1))
	p.Args = []tensor.Access{access(r, p, in, axes(0, len(p.Shape)+len(p.Fold)), true)}
}

func scattering(r *rand.Rand, p *tensor.Primitive, terms int) {
	p.Type = numeric(r)
	if p.Fn == tensor.ScatterSet {
		p.Type = anyType(r)
	}
	if len(p.Shape) == 0 {
		p.Shape = tensor.Shape{1 + r.IntN(5)}
	}
	out := axes(0, len(p.Shape))
	p.Args = []tensor.Access{access(r, &tensor.Primitive{Shape: p.Shape}, p.Type, out, false)}
	p.Fold = shape(r, 2, terms/max(p.Shape.Elements(), 1))
	fold := axes(len(p.Shape), len(p.Shape)+len(p.Fold))
	by := fold
	if r.IntN(3) == 0 { // as if every element had an index of its own
		by = append(by, out[r.IntN(len(out))])
	}
	p.Args = append(p.Args, access(r, p, p.Type, append(out, fold...), false))
	for range 1 + r.IntN(2) {
		p.Imm = append(p.Imm, tensor.Word(r.IntN(len(p.Shape))))
		p.Args = append(p.Args, access(r, p, typeThat(r, tensor.DType.Integer), by, false))
	}
	if p.Args[0].Flat && len(p.Fold) > 0 {
		p.Args[0] = access(r, p, p.Type, out, false)
	}
}

func contracting(r *rand.Rand, p *tensor.Primitive, terms int) {
	in := operands(r, p)
	if p.Fn == tensor.Before && r.IntN(2) == 0 {
		ranking(r, p, in[0])
		return
	}
	if p.Fn == tensor.Dot && r.IntN(12) == 0 {
		convolving(r, p, in)
		return
	}
	if r.IntN(12) == 0 { // past a K-block
		p.Shape, terms = shape(r, 3, 6), 5*tensor.KBlock
		p.Fold = pick(r, []int{tensor.KBlock}, []int{tensor.KBlock + 1}, []int{2, tensor.KBlock}, []int{1 + r.IntN(terms)}, []int{3, 64, 65})
	} else {
		p.Fold = shape(r, 3, terms/max(p.Shape.Elements(), 1))
	}
	// Each output axis belongs to one operand, to both, or now and then to none.
	over := [2][]int{}
	for axis := range p.Shape {
		who := r.IntN(10)
		if who < 6 {
			over[0] = append(over[0], axis)
		}
		if who > 3 && who < 9 {
			over[1] = append(over[1], axis)
		}
	}
	fold := axes(len(p.Shape), len(p.Shape)+len(p.Fold))
	for i := range over {
		p.Args = append(p.Args, access(r, p, in[i], append(over[i], fold...), true))
	}
}

// convolving moves windows over planes: some of many channels, with a border, strides and
// dilations.
func convolving(r *rand.Rand, p *tensor.Primitive, in [2]tensor.DType) {
	batch, out, channels := 1+r.IntN(2), pick(r, 1, 3, 8, 17, 33, 48, 64, 100), 1+r.IntN(3)
	p.Shape, p.Fold = tensor.Shape{batch, out, 1 + r.IntN(5), 1 + r.IntN(8)}, []int{channels, 1 + r.IntN(3), 1 + r.IntN(3)}
	over := func(axis int) tensor.Dim { return tensor.Dim{Terms: []tensor.Term{{Axis: axis, Step: 1}}} }
	data := tensor.Access{Type: in[0], Shape: tensor.Shape{batch, channels}, Dims: []tensor.Dim{over(0), over(4)}}
	for axis := 2; axis < 4; axis++ {
		step, apart, border := 1+r.IntN(2), 1+r.IntN(2), r.IntN(3)
		data.Dims = append(data.Dims, tensor.Dim{Offset: -border, Terms: []tensor.Term{{Axis: axis, Step: step}, {Axis: axis + 3, Step: apart}}})
		data.Shape = append(data.Shape, max((p.Shape[axis]-1)*step+(p.Fold[axis-1]-1)*apart+1-2*border+r.IntN(3), 1))
	}
	weights := tensor.Access{Type: in[1], Shape: tensor.Shape{out, channels, p.Fold[1], p.Fold[2]}, Dims: []tensor.Dim{over(1), over(4), over(5), over(6)}}
	p.Args = []tensor.Access{data, weights}
	if r.IntN(2) == 0 {
		p.Args[0], p.Args[1] = p.Args[1], p.Args[0]
		p.Args[0].Type, p.Args[1].Type = in[0], in[1]
	}
}

// ranking ranks elements among those of their row, as sorting does.
func ranking(r *rand.Rand, p *tensor.Primitive, t tensor.DType) {
	a, rank := int(p.Imm[0]), len(p.Shape)
	p.Fold = []int{p.Shape[a]}
	of := access(r, p, t, axes(0, rank), false)
	among := of
	among.Dims = nil
	for _, d := range of.Dims {
		d.Terms = append([]tensor.Term(nil), d.Terms...)
		for i := range d.Terms {
			if d.Terms[i].Axis == a {
				d.Terms[i].Axis = rank
			}
		}
		among.Dims = append(among.Dims, d)
	}
	p.Args = []tensor.Access{among, of}
}

// operands draws the types of a contraction, sets that of p, and returns those
// of the operands.
func operands(r *rand.Rand, p *tensor.Primitive) [2]tensor.DType {
	if p.Fn == tensor.Before {
		if len(p.Shape) == 0 {
			p.Shape = tensor.Shape{1 + r.IntN(5)}
		}
		p.Type, p.Imm = tensor.Int64, []tensor.Word{tensor.Word(r.IntN(len(p.Shape))), tensor.Word(r.IntN(2))}
		t := numeric(r)
		return [2]tensor.DType{t, t}
	}
	switch r.IntN(10) {
	case 0:
		p.Type = tensor.Int32
		return [2]tensor.DType{pick(r, tensor.Int8, tensor.Uint8), pick(r, tensor.Int8, tensor.Uint8)}
	case 1:
		p.Type = tensor.Float32
		half := pick(r, tensor.Float16, tensor.BFloat16)
		return [2]tensor.DType{half, half}
	case 2:
		p.Type = typeThat(r, func(t tensor.DType) bool { return t.Numeric() && !t.Half() && t.Size() > 1 })
	default:
		p.Type = pick(r, tensor.Float32, tensor.Float32, tensor.Float32, tensor.Int32, tensor.Int64)
	}
	return [2]tensor.DType{p.Type, p.Type}
}
