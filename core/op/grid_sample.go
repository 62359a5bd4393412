package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Elements at places that are computed: each is a sum of the elements around
// it, times weights that follow from its place.

var _ = define(
	lower.Operator{Name: "AffineGrid", Min: 2, Max: 2, Outputs: 1, Attrs: []graph.Attr{graph.Int("align_corners", 0)}, Expand: inFloat32(expandAffineGrid)},
	lower.Operator{Name: "GridSample", Min: 2, Max: 2, Outputs: 1, Expand: inFloat32(expandGridSample), Attrs: []graph.Attr{
		graph.Int("align_corners", 0), graph.String("mode", "linear"), graph.String("padding_mode", "zeros"),
	}},
)

// expandAffineGrid multiplies the homogeneous places of pixels, x first, by
// the matrices theta.
func expandAffineGrid(c *lower.Call, b *graph.Builder) ([]string, error) {
	if err := wantType(c, 1, tensor.Int64); err != nil {
		return nil, err
	}
	size, err := intsInput(c, 1)
	if err != nil {
		return nil, err
	}
	t := c.In[0].Shape
	n := len(size) - 2
	if n != 2 && n != 3 || !t.Equal(tensor.Shape{size[0], n, n + 1}) || !c.In[0].Type.Float() {
		return nil, fmt.Errorf("matrices of %v%v do not place pixels of shape %v", c.In[0].Type, t, size)
	}
	space := tensor.Shape(size[2:])
	if err := space.Check(); err != nil {
		return nil, err
	}
	at := make([]int, n)
	places, err := floatTable(c, c.In[0].Type, tensor.Shape{space.Elements(), n + 1}, func(i int) float64 {
		a := n - 1 - i%(n+1)
		if a < 0 {
			return 1
		}
		space.Coords(i/(n+1), at)
		switch {
		case !c.Flag("align_corners"):
			return float64(2*at[a]+1)/float64(space[a]) - 1
		case space[a] == 1:
			return 0
		}
		return float64(2*at[a])/float64(space[a]-1) - 1
	})
	if err != nil {
		return nil, err
	}
	y := b.Op("MatMul", b.Const(places), swapLast(b, c.Inputs[0], 3))
	return []string{reshaped(b, y, tensor.Shape{size[0], space.Elements(), n}, append(append(tensor.Shape{size[0]}, space...), n))}, nil
}

// sampler reads data [batch, channels, space…] at points of each batch.
type sampler struct {
	*graph.Builder
	c               *lower.Call
	batch, channels int
	space           tensor.Shape
	points          int
}

// neighbours are the positions around points on one axis, and their weights:
// both are [batch, points, taps], or the weights are one.
type neighbours struct {
	at, weight string
	taps       int
}

// around returns the neighbours of places [batch, points, 1] on axis a. What
// lies outside the axis has weight 0 if masked, and fold, if there is one,
// brings it inside; else the border repeats.
func (s *sampler) around(a int, mode, place string, masked bool, fold func(string) string) (neighbours, error) {
	n := neighbours{}
	base := place
	var offsets []int
	switch mode {
	case "nearest":
		base, offsets = s.Op("Round", place), []int{0}
	case "linear":
		base, offsets = s.Op("Floor", place), []int{0, 1}
	case "cubic":
		base, offsets = s.Op("Floor", place), []int{-1, 0, 1, 2}
	default:
		return n, fmt.Errorf("mode %q is not supported; use nearest, linear or cubic", mode)
	}
	n.taps = len(offsets)
	taps, err := floatTable(s.c, s.c.In[0].Type, tensor.Shape{n.taps}, func(i int) float64 { return float64(offsets[i]) })
	if err != nil {
		return n, err
	}
	at := s.Op("Add", base, s.Const(taps))
	zero, one, last := scalarLike(s.c, s.Builder, 0), scalarLike(s.c, s.Builder, 1), scalarLike(s.c, s.Builder, s.space[a]-1)
	distance := s.Op("Abs", s.Op("Sub", place, at))
	switch mode {
	case "linear":
		n.weight = s.Op("Sub", one, distance)
	case "cubic":
		n.weight = s.cubic(distance)
	}
	if masked {
		inside := s.Op("And", s.Op("GreaterOrEqual", at, zero), s.Op("LessOrEqual", at, last))
		if n.weight == "" {
			n.weight = one
		}
		n.weight = s.Op("Where", inside, n.weight, zero)
	} else if fold != nil {
		at = fold(at)
	}
	n.at = s.Cast(s.Op("Max", s.Op("Min", at, last), zero), tensor.Int64)
	return n, nil
}

// cubic is the kernel of cubic convolution with a = −¾.
func (s *sampler) cubic(d string) string {
	horner := func(c ...float64) string {
		p := floatLike(s.c, s.Builder, c[0])
		for _, v := range c[1:] {
			p = s.Op("Add", s.Op("Mul", p, d), floatLike(s.c, s.Builder, v))
		}
		return p
	}
	near := s.Op("LessOrEqual", d, scalarLike(s.c, s.Builder, 1))
	return s.Op("Where", near, horner(1.25, -2.25, 0, 1), horner(-0.75, 3.75, -6, 3))
}

// read returns the elements [batch, channels, points, taps] that all
// combinations of neighbours name, and their weights [batch, points, taps],
// empty if all are 1.
func (s *sampler) read(x string, axes []neighbours) (values, weights string, taps int, err error) {
	n := len(axes)
	shape := tensor.Shape{s.batch, s.points}
	strides := s.space.Strides()
	at := ""
	taps = 1
	for a, k := range axes {
		spread := append(tensor.Shape{s.batch, s.points}, slices.Repeat([]int{1}, n)...)
		spread[2+a] = k.taps
		have := tensor.Shape{s.batch, s.points, k.taps}
		shape, taps = append(shape, k.taps), taps*k.taps
		part := s.Op("Mul", reshaped(s.Builder, k.at, have, spread), int64Const(s.Builder, strides[a]))
		if at = sum(s.Builder, "Add", at, part); k.weight != "" {
			weights = sum(s.Builder, "Mul", weights, reshaped(s.Builder, k.weight, have, spread))
		}
	}
	if err := shape.Check(); err != nil {
		return "", "", 0, err
	}
	flat := tensor.Shape{s.batch, 1, s.points * taps}
	at = s.Op("Expand", reshaped(s.Builder, at, shape, flat), s.Ints(s.batch, s.channels, flat[2]))
	plane := tensor.Shape{s.batch, s.channels, s.space.Elements()}
	x = reshaped(s.Builder, x, append(plane[:2].Clone(), s.space...), plane)
	x = s.With(graph.Int("axis", 2)).Op("GatherElements", x, at)
	values = reshaped(s.Builder, x, tensor.Shape{s.batch, s.channels, flat[2]}, tensor.Shape{s.batch, s.channels, s.points, taps})
	if weights != "" {
		weights = reshaped(s.Builder, weights, shape, tensor.Shape{s.batch, s.points, taps})
	}
	return values, weights, taps, nil
}

// sum joins values by an operator; the first may be missing.
func sum(b *graph.Builder, op, x, y string) string {
	if x == "" {
		return y
	}
	return b.Op(op, x, y)
}

// sums returns the weighted sums [batch, channels, points].
func (s *sampler) sums(x string, axes []neighbours) (string, error) {
	values, weights, taps, err := s.read(x, axes)
	if err != nil {
		return "", err
	}
	if weights == "" {
		return reshaped(s.Builder, values, tensor.Shape{s.batch, s.channels, s.points, taps}, tensor.Shape{s.batch, s.channels, s.points}), nil
	}
	return s.With(graph.String("equation", "bcpt,bpt->bcp")).Op("Einsum", values, weights), nil
}

// expandGridSample takes places from −1 to 1 on each axis, the last axis first.
func expandGridSample(c *lower.Call, b *graph.Builder) ([]string, error) {
	x, g := c.In[0].Shape, c.In[1].Shape
	n := len(x) - 2
	if n < 1 || len(g) != len(x) || g[0] != x[0] || g[len(g)-1] != n {
		return nil, fmt.Errorf("a grid of shape %v does not place points in data of shape %v", g, x)
	}
	if err := wantFloats(c); err != nil {
		return nil, err
	}
	out := g[1 : len(g)-1]
	s := &sampler{Builder: b, c: c, batch: x[0], channels: x[1], space: x[2:], points: out.Elements()}
	grid := c.Inputs[1]
	if c.In[1].Type != c.In[0].Type {
		grid = b.Cast(grid, c.In[0].Type)
	}
	grid = reshaped(b, grid, g, tensor.Shape{s.batch, s.points, n})
	axes := make([]neighbours, n)
	for a := range axes {
		if s.space[a] < 1 {
			return nil, fmt.Errorf("data of shape %v has no elements", x)
		}
		place := b.Op("Slice", grid, b.Ints(n-1-a), b.Ints(n-a), b.Ints(2))
		var err error
		if axes[a], err = s.gridAxis(a, place); err != nil {
			return nil, err
		}
	}
	y, err := s.sums(c.Inputs[0], axes)
	if err != nil {
		return nil, err
	}
	return []string{reshaped(b, y, tensor.Shape{s.batch, s.channels, s.points}, append(x[:2].Clone(), out...))}, nil
}

// gridAxis returns the neighbours of places from −1 to 1 on axis a.
func (s *sampler) gridAxis(a int, place string) (neighbours, error) {
	c, n := s.c, float64(s.space[a])
	real := func(v float64) string { return floatLike(c, s.Builder, v) }
	place = s.Op("Add", place, real(1))
	low, high := -0.5, n-0.5
	if c.Flag("align_corners") {
		low, high = 0, n-1
		place = s.Op("Mul", place, real((n-1)/2))
	} else {
		place = s.Op("Div", s.Op("Sub", s.Op("Mul", place, real(n)), real(1)), real(2))
	}
	mode, padding := c.Text("mode"), c.Text("padding_mode")
	if mode == "nearest" {
		place = s.Op("Round", place)
	}
	reflect := func(x string) string { return s.reflect(x, low, high) }
	fold := reflect
	switch padding {
	case "zeros":
		return s.around(a, mode, place, true, nil)
	case "border":
		fold = func(x string) string { return s.Op("Max", s.Op("Min", x, real(n-1)), real(0)) }
	case "reflection":
	default:
		return neighbours{}, fmt.Errorf("padding_mode %q is not supported; use zeros, border or reflection", padding)
	}
	beyond := s.Op("Or", s.Op("Less", place, real(low)), s.Op("Greater", place, real(high)))
	return s.around(a, mode, s.Op("Where", beyond, fold(place), place), false, fold)
}

// reflect folds x at the borders low and high until it lies between them.
func (s *sampler) reflect(x string, low, high float64) string {
	real := func(v float64) string { return floatLike(s.c, s.Builder, v) }
	if high <= low {
		return s.Op("Mul", x, real(0))
	}
	way := s.Op("Abs", s.Op("Sub", x, real(low)))
	round := real(float64(2 * (high - low)))
	way = s.Op("Sub", way, s.Op("Mul", s.Op("Floor", s.Op("Div", way, round)), round))
	return s.Op("Add", s.Op("Min", way, s.Op("Sub", round, way)), real(low))
}
