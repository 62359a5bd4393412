package tensor

import (
	"fmt"
	"math"

	"github.com/tally-network/tally/core/canon"
)

// Limits on a primitive, so that checking and evaluating one is cheap.
const (
	MaxArgs  = 16
	MaxAxes  = 2 * MaxRank // output axes and folded axes
	MaxTerms = MaxAxes
)

// Primitive is one operation on tensors in the form that is committed to and
// refereed. Its axes are the output axes 0…r−1 followed by the folded axes
// r…r+len(Fold)−1.
type Primitive struct {
	Fn    Fn
	Type  DType // of the output
	Shape Shape // of the output
	Fold  []int // extents of the folded axes; terms run row-major over them
	Args  []Access
	Imm   []Word
	Band  *Band // of the terms of each output element; nil: it has all
}

// Access says which element of an operand a term reads.
type Access struct {
	Type  DType
	Shape Shape
	Flat  bool  // read the element with the output's own flat index (reshape)
	Dims  []Dim // otherwise one for each axis of the operand
}

// Dim is the coordinate on one axis of an operand: Offset + Σ Step·axis, plus,
// if Via is not 0, the value of operand Via, a negative sum counting from the
// end.
type Dim struct {
	Offset int
	Terms  []Term
	Via    int
}

// Term is one summand of an affine coordinate.
type Term struct{ Axis, Step int }

// Terms returns the number of terms of each output element, 0 for map and
// index primitives.
func (p *Primitive) Terms() int {
	if k := p.Fn.Kind(); k == KindMap || k == KindIndex {
		return 0
	}
	return Shape(p.Fold).Elements()
}

// Cost returns the floating-point operations and the bytes moved.
func (p *Primitive) Cost() (flops, bytes int) {
	n := p.Shape.Elements()
	bytes = n * p.Type.Size()
	for _, a := range p.Args {
		bytes += a.Shape.Elements() * a.Type.Size()
	}
	return n * fns[p.Fn].flops * max(p.Terms(), 1), bytes
}

// Check returns an error unless p is well-formed: types fit the function, every
// number is within limits, and operands are read inside their bounds wherever
// nothing says what lies outside.
func (p *Primitive) Check() error {
	info := fns[p.Fn]
	if info.kind == 0 {
		return fmt.Errorf("unknown primitive function %d", uint8(p.Fn))
	}
	if err := p.Shape.Check(); err != nil {
		return err
	}
	if err := Shape(p.Fold).Check(); err != nil {
		return fmt.Errorf("folded axes: %w", err)
	}
	folds := info.kind == KindFold || info.kind == KindContraction
	if !folds && len(p.Fold) != 0 {
		return fmt.Errorf("%v folds no axes, got %v", p.Fn, p.Fold)
	}
	if err := p.checkBand(); err != nil {
		return err
	}
	if len(p.Args) > MaxArgs {
		return fmt.Errorf("%v has %d operands, limit %d", p.Fn, len(p.Args), MaxArgs)
	}
	types := make([]DType, len(p.Args))
	for i := range p.Args {
		types[i] = p.Args[i].Type
		if err := p.checkAccess(i); err != nil {
			return fmt.Errorf("%v, operand %d: %w", p.Fn, i, err)
		}
	}
	if p.Fn == Copy { // a copy may read through index operands
		if len(types) == 0 {
			return fmt.Errorf("%v has no operand", p.Fn)
		}
		types = types[:1]
	}
	if err := p.Fn.check(types, p.Type); err != nil {
		return err
	}
	imms := info.imms
	if imms < 0 {
		imms = len(p.Args) - 2
	}
	if len(p.Imm) != imms {
		return fmt.Errorf("%v takes %d immediates, got %d", p.Fn, imms, len(p.Imm))
	}
	if info.kind == KindIndex && !storable(p.Type, p.Imm[0]) {
		return fmt.Errorf("%v fills with %#x, which is no element of type %v", p.Fn, p.Imm[0], p.Type)
	}
	if p.Fn == Before && (p.Imm[0] >= Word(len(p.Shape)) || p.Imm[1] > 1) {
		return fmt.Errorf("%v along axis %d of %d, ascending %d", p.Fn, p.Imm[0], len(p.Shape), p.Imm[1])
	}
	if p.Fn.Scatters() {
		for _, axis := range p.Imm {
			if axis >= Word(len(p.Shape)) {
				return fmt.Errorf("%v on axis %d of %d", p.Fn, axis, len(p.Shape))
			}
		}
	}
	if n := p.opening(1); n > openBytes {
		return fmt.Errorf("%v reads so many operands that opening them for a single term takes up to %d bytes, and a dispute can bring %d", p.Fn, n, openBytes)
	}
	if n := p.Terms(); n > 0 && p.Shape.Elements() > math.MaxInt64/64/n {
		return fmt.Errorf("%v over %v and %v is too large", p.Fn, p.Shape, p.Fold)
	}
	return nil
}

func (p *Primitive) axis(i int) (extent int, ok bool) {
	switch {
	case i < 0 || i >= len(p.Shape)+len(p.Fold):
		return 0, false
	case i < len(p.Shape):
		return p.Shape[i], true
	}
	return p.Fold[i-len(p.Shape)], true
}

func (p *Primitive) checkAccess(i int) error {
	a := &p.Args[i]
	if !a.Type.Valid() {
		return fmt.Errorf("unknown element type %d", uint8(a.Type))
	}
	if err := a.Shape.Check(); err != nil {
		return err
	}
	if a.Flat {
		if len(a.Dims) != 0 || len(p.Fold) != 0 || a.Shape.Elements() != p.Shape.Elements() {
			return fmt.Errorf("flat access to %v from %v", a.Shape, p.Shape)
		}
		return nil
	}
	if len(a.Dims) != len(a.Shape) {
		return fmt.Errorf("%d coordinates for shape %v", len(a.Dims), a.Shape)
	}
	for d, dim := range a.Dims {
		if dim.Via != 0 {
			if p.Fn != Copy || i != 0 || dim.Via < 0 || dim.Via >= len(p.Args) || !p.Args[dim.Via].Type.Integer() {
				return fmt.Errorf("coordinate %d read through operand %d", d, dim.Via)
			}
		}
		if i == 0 && p.Fn.Scatters() { // the base is read before the first term
			for _, t := range dim.Terms {
				if t.Axis >= len(p.Shape) {
					return fmt.Errorf("coordinate %d of the base follows folded axis %d", d, t.Axis)
				}
			}
		}
		lo, hi, err := p.reach(dim)
		if err != nil {
			return err
		}
		mayMiss := p.Fn == Copy && i == 0 || p.Fn == Join || len(p.Fold) > 0 && !p.Fn.Scatters()
		if !mayMiss && lo <= hi && (lo < 0 || hi >= a.Shape[d]) {
			return fmt.Errorf("coordinate %d reaches from %d to %d, outside extent %d", d, lo, hi, a.Shape[d])
		}
	}
	return nil
}

// reach returns the least and the greatest value of a coordinate; lo > hi if
// some axis has no extent.
func (p *Primitive) reach(dim Dim) (lo, hi int, err error) {
	if len(dim.Terms) > MaxTerms {
		return 0, 0, fmt.Errorf("coordinate of %d terms, limit %d", len(dim.Terms), MaxTerms)
	}
	if dim.Offset > MaxDim || dim.Offset < -MaxDim {
		return 0, 0, fmt.Errorf("offset %d is out of range", dim.Offset)
	}
	lo, hi = dim.Offset, dim.Offset
	empty := false
	for _, t := range dim.Terms {
		n, ok := p.axis(t.Axis)
		if !ok {
			return 0, 0, fmt.Errorf("axis %d does not exist", t.Axis)
		}
		if t.Step > MaxDim || t.Step < -MaxDim || n > 1 && (t.Step > math.MaxInt64/64/n || t.Step < -(math.MaxInt64/64/n)) {
			return 0, 0, fmt.Errorf("step %d is out of range", t.Step)
		}
		if n == 0 {
			empty = true
		} else if d := t.Step * (n - 1); d < 0 {
			lo += d
		} else {
			hi += d
		}
	}
	if empty {
		return 0, -1, nil
	}
	return lo, hi, nil
}

// Encode appends the canonical encoding of p.
func (p *Primitive) Encode(e *canon.Encoder) {
	fn := uint8(p.Fn)
	if p.Band != nil {
		fn |= hasBand
	}
	e.U8(fn)
	e.U8(uint8(p.Type))
	p.Shape.Encode(e)
	Shape(p.Fold).Encode(e)
	canon.List(e, p.Args, func(e *canon.Encoder, a Access) {
		e.U8(uint8(a.Type))
		a.Shape.Encode(e)
		e.Bool(a.Flat)
		canon.List(e, a.Dims, func(e *canon.Encoder, d Dim) { d.encode(e) })
	})
	canon.List(e, p.Imm, func(e *canon.Encoder, w Word) { e.Uint(w) })
	if p.Band != nil {
		p.Band.From.encode(e)
		p.Band.To.encode(e)
	}
}

// DecodePrimitive reads what Encode wrote and checks it.
func DecodePrimitive(d *canon.Decoder) *Primitive {
	fn := d.U8()
	p := &Primitive{Fn: Fn(fn &^ hasBand), Type: DType(d.U8()), Shape: DecodeShape(d), Fold: DecodeShape(d)}
	p.Args = canon.ReadList(d, MaxArgs, 4, func(d *canon.Decoder) Access {
		a := Access{Type: DType(d.U8()), Shape: DecodeShape(d), Flat: d.Bool()}
		a.Dims = canon.ReadList(d, MaxRank, 3, decodeDim)
		return a
	})
	p.Imm = canon.ReadList(d, MaxArgs, 1, func(d *canon.Decoder) Word { return d.Uint(math.MaxUint64) })
	if fn&hasBand != 0 {
		p.Band = &Band{From: decodeDim(d), To: decodeDim(d)}
	}
	if d.Err() == nil {
		if err := p.Check(); err != nil {
			d.Fail("%v", err)
		}
	}
	return p
}
