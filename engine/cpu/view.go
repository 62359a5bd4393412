package cpu

import (
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// view reads one operand of a primitive along an ordered list of the
// primitive's axes, as if it were a dense tensor over them.
type view struct {
	arg    int
	base   int
	loops  []lap   // outermost first; at least one
	bounds []bound // empty where every position lies inside the operand
}

// lap is one axis, or several neighbours that run on into each other.
type lap struct{ extent, stride int }

// bound is a coordinate that may lie outside its axis, or that the value of an
// index operand shifts.
type bound struct {
	offset int
	steps  []int // by loop
	extent int   // of the operand's axis
	stride int   // of the operand's axis, in elements
	index  *index
}

// index says where the value that shifts a coordinate is read.
type index struct {
	arg, base int
	steps     []int // by loop
}

// linear returns the linear form of operand arg over all axes of p. inside is
// false where a position may lie outside the operand or depends on an index.
func linear(p *tensor.Primitive, arg int) (base int, strides []int, inside bool) {
	if p.Args[arg].Flat {
		return 0, append(p.Shape.Strides(), make([]int, len(p.Fold))...), true
	}
	return p.Reader(arg)
}

// newView returns the view of operand arg along the given axes of p.
func newView(p *tensor.Primitive, arg int, axes []int) *view {
	base, strides, inside := linear(p, arg)
	v := &view{arg: arg, base: base}
	all := []steps{strides}
	if !inside {
		for d := range p.Args[arg].Dims {
			if b, mayMiss := newBound(p, arg, d); mayMiss {
				v.bounds = append(v.bounds, b)
				all = append(all, b.steps)
				if b.index != nil {
					all = append(all, b.index.steps)
				}
			}
		}
	}
	shape := append(p.Shape.Clone(), p.Fold...)
	keep, extents := merge(shape, axes, all)
	if v.indexed(keep) {
		keep, extents = append(keep, -1), append(extents, 1)
	}
	for i, s := range steps(strides).pick(keep) {
		v.loops = append(v.loops, lap{extents[i], s})
	}
	for i := range v.bounds {
		b := &v.bounds[i]
		b.steps = steps(b.steps).pick(keep)
		if b.index != nil {
			b.index.steps = steps(b.index.steps).pick(keep)
		}
	}
	return v
}

// steps is how far something moves along each axis.
type steps []int

// pick returns the steps along the given axes; axis −1 does not move.
func (s steps) pick(axes []int) []int {
	out := make([]int, len(axes))
	for i, a := range axes {
		if a >= 0 {
			out[i] = s[a]
		}
	}
	return out
}

// merge joins neighbouring axes wherever stepping off the end of the inner one
// is, for all, a step along the outer one. A merged axis goes by the number of
// its innermost part. Axes of one element are dropped.
func merge(shape []int, axes []int, all []steps) (keep, extents []int) {
	for _, a := range axes {
		if shape[a] == 1 {
			continue
		}
		if n := len(keep) - 1; n >= 0 && runsOn(all, keep[n], a, shape[a]) {
			keep[n] = a
			extents[n] *= shape[a]
			continue
		}
		keep, extents = append(keep, a), append(extents, shape[a])
	}
	if len(keep) == 0 {
		keep, extents = []int{-1}, []int{1}
	}
	return keep, extents
}

func runsOn(all []steps, outer, inner, extent int) bool {
	for _, s := range all {
		if s[outer] != s[inner]*extent {
			return false
		}
	}
	return true
}

// newBound returns coordinate d of operand arg, its steps by axis of p, and
// whether it needs watching.
func newBound(p *tensor.Primitive, arg, d int) (b bound, mayMiss bool) {
	a := &p.Args[arg]
	dim := a.Dims[d]
	shape := append(p.Shape.Clone(), p.Fold...)
	b = bound{offset: dim.Offset, steps: make([]int, len(shape)), extent: a.Shape[d], stride: a.Shape.Strides()[d]}
	lo, hi := dim.Offset, dim.Offset
	for _, t := range dim.Terms {
		b.steps[t.Axis] += t.Step
		reach := t.Step * (shape[t.Axis] - 1)
		lo, hi = lo+min(reach, 0), hi+max(reach, 0)
	}
	if dim.Via != 0 {
		base, strides, _ := linear(p, dim.Via) // Check keeps index operands inside
		b.index = &index{arg: dim.Via, base: base, steps: strides}
	}
	return b, b.index != nil || lo < 0 || hi >= b.extent
}

// indexed reports whether an index, or a coordinate that it shifts, changes
// along the last of the given axes. Rows must then be single elements.
func (v *view) indexed(axes []int) bool {
	last := axes[len(axes)-1]
	for _, b := range v.bounds {
		if last >= 0 && b.index != nil && (b.index.steps[last] != 0 || b.steps[last] != 0) {
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

func (v *view) seek(i int) position {
	p := position{at: v.base}
	for l := len(v.loops) - 1; l >= 0; l-- {
		c := i % v.loops[l].extent
		i /= v.loops[l].extent
		p.coord[l] = c
		p.at += c * v.loops[l].stride
	}
	return p
}

// nextRow moves to the start of the next row.
func (v *view) nextRow(p *position) {
	l := len(v.loops) - 1
	p.at -= p.coord[l] * v.loops[l].stride
	p.coord[l] = 0
	for l--; l >= 0; l-- {
		p.coord[l]++
		p.at += v.loops[l].stride
		if p.coord[l] < v.loops[l].extent {
			return
		}
		p.coord[l] = 0
		p.at -= v.loops[l].extent * v.loops[l].stride
	}
}

// inside returns the part lo…hi−1 of the next n elements of a row that lies
// inside the operand, and how far indexes shift it.
func (v *view) inside(args []*tensor.Tensor, p *position, n int) (lo, hi, shift int) {
	hi = n
	for i := range v.bounds {
		b := &v.bounds[i]
		c := b.offset
		for l := range v.loops {
			c += b.steps[l] * p.coord[l]
		}
		if b.index != nil {
			x := b.index.value(args, p)
			if x < -tensor.MaxDim || x > tensor.MaxDim {
				return 0, 0, 0
			}
			c += x
			shift += x * b.stride
			if c < 0 {
				c += b.extent
				shift += b.extent * b.stride
			}
		}
		end := b.extent - 1 - c // steps left before the end, and c before the start
		switch s := b.steps[len(v.loops)-1]; {
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

func (x *index) value(args []*tensor.Tensor, p *position) int {
	i := x.base
	for l, s := range x.steps {
		i += s * p.coord[l]
	}
	return whole(args[x.arg], i)
}

// whole returns element i of a tensor of integers; those of 64 bits are the
// commonest.
func whole(t *tensor.Tensor, i int) int {
	if t.Type == tensor.Int64 {
		return int(mem.Bits[int64](t)[i])
	}
	return int(int64(t.At(i)))
}
