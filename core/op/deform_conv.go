package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

var _ = define(
	lower.Operator{Name: "DeformConv", Min: 3, Max: 5, Outputs: 1, Expand: inFloat32(expandDeformConv), Attrs: append(slices.Clone(windowAttrs), graph.Int("group", 1), graph.Int("offset_group", 1))},
)

// expandDeformConv reads what each tap of the kernel meets at its own place,
// times its mask, and multiplies that by the kernels.
func expandDeformConv(c *lower.Call, b *graph.Builder) ([]string, error) {
	if err := wantFloats(c); err != nil {
		return nil, err
	}
	w, group, err := convWindow(c)
	if err != nil {
		return nil, err
	}
	x, k, parts, n := c.In[0].Shape, c.In[1].Shape, c.Int("offset_group"), len(w.in)
	taps, places := tensor.Shape(w.kernel).Elements(), tensor.Shape(w.out).Elements()
	if parts < 1 || parts > tensor.MaxDim || x[1]%parts != 0 || tensor.Shape(w.in).Elements() < 1 {
		return nil, fmt.Errorf("data of shape %v does not fall into %d offset groups", x, parts)
	}
	if want := append(tensor.Shape{x[0], parts * taps * n}, w.out...); !c.In[2].Shape.Equal(want) {
		return nil, fmt.Errorf("offsets have shape %v, but should have %v", c.In[2].Shape, want)
	}
	s := &sampler{Builder: b, c: c, batch: x[0] * parts, channels: x[1] / parts, space: x[2:], points: taps * places}
	offsets := reshaped(b, c.Inputs[2], c.In[2].Shape, tensor.Shape{s.batch, taps, n, places})
	axes := make([]neighbours, n)
	tap, at := make([]int, n), make([]int, n)
	for a := range axes {
		grid, err := floatTable(c, c.In[0].Type, tensor.Shape{1, taps, 1, places}, func(i int) float64 {
			tensor.Shape(w.kernel).Coords(i/places, tap)
			tensor.Shape(w.out).Coords(i%places, at)
			return float64(at[a]*w.stride[a] + tap[a]*w.dilation[a] - w.before[a])
		})
		if err != nil {
			return nil, err
		}
		place := b.Op("Add", b.Op("Slice", offsets, b.Ints(a), b.Ints(a+1), b.Ints(2)), b.Const(grid))
		place = reshaped(b, place, tensor.Shape{s.batch, taps, 1, places}, tensor.Shape{s.batch, s.points, 1})
		if axes[a], err = s.around(a, "linear", place, true, nil); err != nil {
			return nil, err
		}
	}
	read, err := s.sums(c.Inputs[0], axes)
	if err != nil {
		return nil, err
	}
	if c.Has(4) {
		have := c.In[4].Shape
		if !have.Equal(append(tensor.Shape{x[0], parts * taps}, w.out...)) {
			return nil, fmt.Errorf("the mask has shape %v, but should have a place for each offset", have)
		}
		read = b.Op("Mul", read, reshaped(b, c.Inputs[4], have, tensor.Shape{s.batch, 1, s.points}))
	}
	read = reshaped(b, read, tensor.Shape{s.batch, s.channels, s.points}, tensor.Shape{x[0], group, k[1], taps, places})
	kernels := reshaped(b, c.Inputs[1], k, tensor.Shape{group, k[0] / group, k[1], taps})
	y := b.With(graph.String("equation", "ngckp,gmck->ngmp")).Op("Einsum", read, kernels)
	y = reshaped(b, y, tensor.Shape{x[0], group, k[0] / group, places}, append(tensor.Shape{x[0], k[0]}, w.out...))
	if c.Has(3) {
		if !c.In[3].Shape.Equal(k[:1]) {
			return nil, fmt.Errorf("input %q has shape %v, but should have %v", c.Inputs[3], c.In[3].Shape, k[:1])
		}
		y = b.Op("Add", y, reshaped(b, c.Inputs[3], k[:1], append(k[:1].Clone(), slices.Repeat([]int{1}, n)...)))
	}
	return []string{y}, nil
}
