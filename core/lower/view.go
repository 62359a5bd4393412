package lower

import (
	"cmp"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// View is a tensor as an operator sees it: a type, a shape, and how its elements are
// found in a tensor that is there. Its element at x is the element of src at
// coordinates that are affine in x; or, if flat, the element of src with the same
// row-major index. Moving data emits nothing: it makes another view.
type View struct {
	Type  tensor.DType
	Shape tensor.Shape

	src  graph.Ref
	from tensor.Shape // of src
	dims []tensor.Dim // a coordinate for each axis of src, over the axes of Shape
	flat bool
}

// whole is a tensor seen as it is.
func whole(src graph.Ref, t tensor.DType, s tensor.Shape) View {
	return View{Type: t, Shape: s, src: src, from: s, dims: Axes(0, len(s))}
}

// Axis is the coordinate that equals an axis.
func Axis(a int) tensor.Dim { return Strided(0, a, 1) }

// Strided is the coordinate offset + step·axis.
func Strided(offset, a, step int) tensor.Dim {
	return tensor.Dim{Offset: offset, Terms: []tensor.Term{{Axis: a, Step: step}}}
}

// Axes returns the coordinates that equal n axes from the first on.
func Axes(first, n int) []tensor.Dim {
	out := make([]tensor.Dim, n)
	for i := range out {
		out[i] = Axis(first + i)
	}
	return out
}

// identity reports whether v shows its source as it is.
func (v View) identity() bool {
	if v.flat || !v.Shape.Equal(v.from) {
		return false
	}
	for i, d := range v.dims {
		if v.from[i] != 1 && (d.Offset != 0 || len(d.Terms) != 1 || d.Terms[0] != tensor.Term{Axis: i, Step: 1}) {
			return false
		}
	}
	return true
}

// contiguous reports whether v has the elements of its source in the same
// row-major order.
func (v View) contiguous() bool {
	if v.flat {
		return true
	}
	if v.Shape.Elements() != v.from.Elements() {
		return false
	}
	stride := make([]int, len(v.Shape))
	for i, step := range v.from.Strides() {
		if v.dims[i].Offset != 0 {
			return false
		}
		for _, t := range v.dims[i].Terms {
			stride[t.Axis] += t.Step * step
		}
	}
	for a, step := range v.Shape.Strides() {
		if v.Shape[a] != 1 && stride[a] != step {
			return false
		}
	}
	return true
}

// exact reports whether an axis of v is one of its source, so that what lies
// outside the one lies outside the other.
func (v View) exact(a int) bool {
	found := false
	for i, d := range v.dims {
		for _, t := range d.Terms {
			if t.Axis != a {
				continue
			}
			if found || t.Step != 1 || len(d.Terms) != 1 || d.Offset != 0 || v.from[i] != v.Shape[a] {
				return false
			}
			found = true
		}
	}
	return found
}

// Through returns the view of shape s whose element at x is v's element at
// coords(x), one affine coordinate for each axis of v. It must not be flat.
func (v View) Through(s tensor.Shape, coords []tensor.Dim) View {
	dims := make([]tensor.Dim, len(v.dims))
	for i, d := range v.dims {
		dims[i] = compose(d, coords)
	}
	v.Shape, v.dims = s, dims
	return v
}

// Access returns how a primitive reads v at the given coordinates, one for each axis of
// v, over the output and folded axes of the primitive. v must not be flat.
func (v View) Access(coords []tensor.Dim) Operand {
	return Operand{v.src, tensor.Access{Type: v.Type, Shape: v.from, Dims: v.Through(v.Shape, coords).dims}}
}

// compose replaces the axes that d reads by coordinates.
func compose(d tensor.Dim, coords []tensor.Dim) tensor.Dim {
	out := tensor.Dim{Offset: d.Offset}
	for _, t := range d.Terms {
		c := coords[t.Axis]
		out.Offset += t.Step * c.Offset
		out.Via = max(out.Via, c.Via)
		for _, u := range c.Terms {
			out.Terms = addTerm(out.Terms, tensor.Term{Axis: u.Axis, Step: t.Step * u.Step})
		}
	}
	return out
}

// addTerm adds t to a sum of terms in ascending order of axes.
func addTerm(terms []tensor.Term, t tensor.Term) []tensor.Term {
	i, found := slices.BinarySearchFunc(terms, t, func(x, y tensor.Term) int { return cmp.Compare(x.Axis, y.Axis) })
	if !found {
		return slices.Insert(terms, i, t)
	}
	if terms[i].Step += t.Step; terms[i].Step == 0 {
		return slices.Delete(terms, i, i+1)
	}
	return terms
}

// Transposed returns v with its axes in another order: axis i is v's axis perm[i]. It
// must not be flat.
func (v View) Transposed(perm []int) View {
	s, coords := make(tensor.Shape, len(perm)), make([]tensor.Dim, len(perm))
	for i, p := range perm {
		s[i], coords[p] = v.Shape[p], Axis(i)
	}
	return v.Through(s, coords)
}

// Broadcast returns v as it takes part in an operation of shape s, to which its shape
// broadcasts. It must not be flat.
func (v View) Broadcast(s tensor.Shape) View {
	coords := make([]tensor.Dim, len(v.Shape))
	for i, n := range v.Shape {
		if j := i + len(s) - len(v.Shape); n == s[j] {
			coords[i] = Axis(j)
		}
	}
	return v.Through(s, coords)
}

// split returns v in the given shape if each of its axes is a run of axes of
// that shape. It must not be flat, and must have elements.
func (v View) split(s tensor.Shape) (View, bool) {
	coords := make([]tensor.Dim, len(v.Shape))
	j := 0
	for i, n := range v.Shape {
		first, size := j, 1
		for ; size < n && j < len(s); j++ {
			size *= s[j]
		}
		if size != n {
			return v, false
		}
		for k, step := j-1, 1; k >= first; k-- {
			if s[k] != 1 {
				coords[i].Terms = append(coords[i].Terms, tensor.Term{Axis: k, Step: step})
			}
			step *= s[k]
		}
	}
	for ; j < len(s); j++ {
		if s[j] != 1 {
			return v, false
		}
	}
	return v.Through(s, coords), true
}

// Sliced returns n elements of axis a from start on, step apart. v must not be
// flat.
func (v View) Sliced(a, start, step, n int) View {
	s, coords := v.Shape.Clone(), Axes(0, len(v.Shape))
	s[a] = n
	if n <= 1 {
		step = 1
	}
	if n != v.Shape[a] || step != 1 {
		coords[a] = Strided(start, a, step)
	}
	return v.Through(s, coords)
}
