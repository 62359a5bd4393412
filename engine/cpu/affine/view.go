package affine

import (
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// View reads one operand of a primitive along an ordered list of the
// primitive's axes, as if it were a dense tensor over them.
type View struct {
	Arg    int     // which operand
	Base   int     // element at which all loops begin
	Loops  []Loop  // outermost first; at least one
	Bounds []Bound // checks; empty where every position lies inside the operand

	Transpose asm.TransposeKernel // for elements of 32 bits; nil: they are copied one by one
}

// Loop is one level of a loop nest: an axis, or several neighbours merged. Stride counts
// elements of the operand.
type Loop struct{ Extent, Stride int }

// Bound is the check of one coordinate, Offset + Σ Steps·position: it may lie outside
// its axis, or be shifted by the value of an index operand.
type Bound struct {
	Offset int
	Steps  []int  // by loop of a view, or by axis of a primitive
	Extent int    // of the operand's axis
	Stride int    // of the operand's axis, in elements
	Index  *Index // nil if nothing shifts it
}

// Index says where the value that shifts a coordinate is read.
type Index struct {
	Arg, Base int
	Steps     []int // by loop
}

// NewView returns the view of operand arg along the given axes of p.
func NewView(p *tensor.Primitive, arg int, axes []int) *View {
	base, strides, inside := Linear(p, arg)
	v := &View{Arg: arg, Base: base}
	all := []Strides{strides}
	if !inside {
		for d := range p.Args[arg].Dims {
			if b, mayMiss := NewBound(p, arg, d); mayMiss {
				v.Bounds = append(v.Bounds, b)
				all = append(all, b.Steps)
				if b.Index != nil {
					all = append(all, b.Index.Steps)
				}
			}
		}
	}
	shape := append(p.Shape.Clone(), p.Fold...)
	keep, extents := Merge(shape, axes, all)
	if v.indexed(keep) {
		keep, extents = append(keep, -1), append(extents, 1)
	}
	for i, s := range Strides(strides).Pick(keep) {
		v.Loops = append(v.Loops, Loop{extents[i], s})
	}
	for i := range v.Bounds {
		b := &v.Bounds[i]
		b.Steps = Strides(b.Steps).Pick(keep)
		if b.Index != nil {
			b.Index.Steps = Strides(b.Index.Steps).Pick(keep)
		}
	}
	return v
}

// TransposedTile returns how many elements of a view are worth reading together because its
// rows run across lines of memory, which it else reads again for every row; 0 if they do not.
func (v *View) TransposedTile() int {
	n := len(v.Loops)
	if n < 2 || len(v.Bounds) > 0 || v.Loops[n-2].Stride != 1 || v.Loops[n-1].Stride < 2 {
		return 0
	}
	return min(v.Loops[n-2].Extent, tuning.TransposedRows) * v.Loops[n-1].Extent
}

// NewBound returns coordinate d of operand arg, its steps by axis of p, and
// whether it needs watching.
func NewBound(p *tensor.Primitive, arg, d int) (b Bound, mayMiss bool) {
	a := &p.Args[arg]
	dim := a.Dims[d]
	shape := append(p.Shape.Clone(), p.Fold...)
	b = Bound{Offset: dim.Offset, Steps: make([]int, len(shape)), Extent: a.Shape[d], Stride: a.Shape.Strides()[d]}
	lo, hi := dim.Offset, dim.Offset
	for _, t := range dim.Terms {
		b.Steps[t.Axis] += t.Step
		reach := t.Step * (shape[t.Axis] - 1)
		lo, hi = lo+min(reach, 0), hi+max(reach, 0)
	}
	if dim.Via != 0 {
		base, strides, _ := Linear(p, dim.Via) // Check keeps index operands inside
		b.Index = &Index{Arg: dim.Via, Base: base, Steps: strides}
	}
	return b, b.Index != nil || lo < 0 || hi >= b.Extent
}

// indexed reports whether an index, or a coordinate that it shifts, changes
// along the last of the given axes. Rows must then be single elements.
func (v *View) indexed(axes []int) bool {
	last := axes[len(axes)-1]
	for _, b := range v.Bounds {
		if last >= 0 && b.Index != nil && (b.Index.Steps[last] != 0 || b.Steps[last] != 0) {
			return true
		}
	}
	return false
}

// position is a place in a view.
type position struct {
	coord [tensor.MaxAxes + 1]int
	at    int // linear position in the operand, indexes apart
}

func (v *View) seek(i int) position {
	p := position{at: v.Base}
	for l := len(v.Loops) - 1; l >= 0; l-- {
		c := i % v.Loops[l].Extent
		i /= v.Loops[l].Extent
		p.coord[l] = c
		p.at += c * v.Loops[l].Stride
	}
	return p
}

// nextRow moves to the start of the next row.
func (v *View) nextRow(p *position) {
	l := len(v.Loops) - 1
	p.at -= p.coord[l] * v.Loops[l].Stride
	p.coord[l] = 0
	for l--; l >= 0; l-- {
		p.coord[l]++
		p.at += v.Loops[l].Stride
		if p.coord[l] < v.Loops[l].Extent {
			return
		}
		p.coord[l] = 0
		p.at -= v.Loops[l].Extent * v.Loops[l].Stride
	}
}

// inside returns the part lo…hi−1 of the next n elements of a row that lies
// inside the operand, and how far indexes shift it.
func (v *View) inside(args []*tensor.Tensor, p *position, n int) (lo, hi, shift int) {
	hi = n
	for i := range v.Bounds {
		b := &v.Bounds[i]
		c := b.Offset
		for l := range v.Loops {
			c += b.Steps[l] * p.coord[l]
		}
		if b.Index != nil {
			x := b.Index.value(args, p)
			if x < -tensor.MaxDim || x > tensor.MaxDim {
				return 0, 0, 0
			}
			c += x
			shift += x * b.Stride
			if c < 0 {
				c += b.Extent
				shift += b.Extent * b.Stride
			}
		}
		end := b.Extent - 1 - c // steps left before the end, and c before the start
		switch s := b.Steps[len(v.Loops)-1]; {
		case s == 0:
			if c < 0 || end < 0 {
				return 0, 0, 0
			}
		case s > 0:
			lo = max(lo, mem.CeilDiv(-c, s))
			hi = min(hi, mem.CeilDiv(end+1, s))
		default:
			lo = max(lo, mem.CeilDiv(-end, -s))
			hi = min(hi, mem.CeilDiv(c+1, -s))
		}
	}
	if lo >= hi {
		return 0, 0, 0
	}
	return lo, hi, shift
}

func (x *Index) value(args []*tensor.Tensor, p *position) int {
	i := x.Base
	for l, s := range x.Steps {
		i += s * p.coord[l]
	}
	return intAt(args[x.Arg], i)
}

// intAt returns element i of a tensor of integers; those of 64 bits are the
// commonest.
func intAt(t *tensor.Tensor, i int) int {
	if t.Type == tensor.Int64 {
		return int(mem.Bits[int64](t)[i])
	}
	return int(int64(t.At(i)))
}
