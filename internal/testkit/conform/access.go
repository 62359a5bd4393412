package conform

import (
	"math/rand/v2"

	"github.com/tally-network/tally/core/tensor"
)

// maxElements bounds an operand, so that cases stay quick.
const maxElements = 1 << 15

// access returns a random access of an operand of type t over the given axes
// of p. Unless it may miss, it stays inside the operand.
func access(r *rand.Rand, p *tensor.Primitive, t tensor.DType, over []int, mayMiss bool) tensor.Access {
	if len(p.Fold) == 0 && r.IntN(8) == 0 {
		return tensor.Access{Type: t, Shape: regroup(r, p.Shape), Flat: true}
	}
	for {
		a := tensor.Access{Type: t}
		if r.IntN(3) == 0 {
			skewed(r, p, &a, over)
		} else {
			plain(r, p, &a, over)
		}
		if mayMiss && r.IntN(2) == 0 {
			bend(r, &a)
		}
		if len(a.Shape) <= tensor.MaxRank && a.Shape.Elements() <= maxElements {
			return a
		}
	}
}

// regroup returns another shape of as many elements.
func regroup(r *rand.Rand, s tensor.Shape) tensor.Shape {
	switch r.IntN(3) {
	case 0:
		return tensor.Shape{s.Elements()}
	case 1:
		out := s.Clone()
		r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
		return out
	}
	return s.Clone()
}

func extent(p *tensor.Primitive, axis int) int {
	if axis < len(p.Shape) {
		return p.Shape[axis]
	}
	return p.Fold[axis-len(p.Shape)]
}

// plain reads some of the axes, in order or not, forwards or backwards: what
// broadcasting, transposing and reducing do.
func plain(r *rand.Rand, p *tensor.Primitive, a *tensor.Access, over []int) {
	order := append([]int(nil), over...)
	if r.IntN(2) == 0 {
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	for _, axis := range order {
		n := extent(p, axis)
		switch r.IntN(12) {
		case 0:
			continue // broadcast
		case 1:
			a.Dims, a.Shape = append(a.Dims, tensor.Dim{}), append(a.Shape, 1)
		case 2, 3:
			a.Dims, a.Shape = append(a.Dims, tensor.Dim{Offset: max(n-1, 0), Terms: []tensor.Term{{Axis: axis, Step: -1}}}), append(a.Shape, n)
		default:
			a.Dims, a.Shape = append(a.Dims, tensor.Dim{Terms: []tensor.Term{{Axis: axis, Step: 1}}}), append(a.Shape, n)
		}
	}
}

// skewed reads coordinates that mix axes, with steps and offsets: what slices,
// windows and diagonals do.
func skewed(r *rand.Rand, p *tensor.Primitive, a *tensor.Access, over []int) {
	for range r.IntN(4) {
		dim, lo, hi := tensor.Dim{}, 0, 0
		for range r.IntN(3) {
			if len(over) == 0 {
				break
			}
			t := tensor.Term{Axis: over[r.IntN(len(over))], Step: r.IntN(6) - 2}
			dim.Terms = append(dim.Terms, t)
			reach := t.Step * max(extent(p, t.Axis)-1, 0)
			lo, hi = lo+min(reach, 0), hi+max(reach, 0)
		}
		before, after := r.IntN(3), r.IntN(3)
		dim.Offset = before - lo
		a.Dims, a.Shape = append(a.Dims, dim), append(a.Shape, before+hi-lo+1+after)
	}
}

// bend moves coordinates so that some lie outside.
func bend(r *rand.Rand, a *tensor.Access) {
	for d := range a.Dims {
		if r.IntN(2) == 0 {
			a.Dims[d].Offset += r.IntN(7) - 3
		}
		if r.IntN(4) == 0 {
			a.Shape[d] = max(a.Shape[d]-r.IntN(4), 0)
		}
	}
}
