package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Images arranged anew: blocks of pixels as channels, the middle, grids.

var blockAttrs = []graph.Attr{graph.Int("blocksize", 0), graph.String("mode", "DCR")}

var _ = define(
	lower.Operator{Name: "DepthToSpace", Min: 1, Max: 1, Outputs: 1, Attrs: blockAttrs, Expand: expandDepthToSpace},
	lower.Operator{Name: "SpaceToDepth", Min: 1, Max: 1, Outputs: 1, Attrs: blockAttrs, Expand: expandSpaceToDepth},
	lower.Operator{Name: "CenterCropPad", Min: 2, Max: 2, Outputs: 1, Attrs: []graph.Attr{graph.Ints("axes")}, Expand: expandCenterCropPad},
	lower.Operator{Name: "AffineGrid", Min: 2, Max: 2, Outputs: 1, Attrs: []graph.Attr{graph.Int("align_corners", 0)}, Expand: inFloat32(expandAffineGrid)},
)

// blocksOf returns the extents of an image, and the block that is moved. In mode
// CRD the block's place is the inner part of a channel's number, in DCR the
// outer part.
func blocksOf(c *lower.Call) (s tensor.Shape, n int, inner bool, err error) {
	s, n = c.In[0].Shape, c.Int("blocksize")
	mode := c.Text("mode")
	switch {
	case len(s) != 4:
		err = fmt.Errorf("input %q has shape %v, but should be [batch channels height width]", c.Inputs[0], s)
	case n < 1 || n > tensor.MaxDim:
		err = fmt.Errorf("blocksize is %d, but should be positive", n)
	case mode != "DCR" && mode != "CRD":
		err = fmt.Errorf("mode %q is not supported; use DCR or CRD", mode)
	}
	return s, n, mode == "CRD", err
}

// moved reshapes a value, orders its axes anew and reshapes it again.
func moved(b *graph.Builder, x string, from, split tensor.Shape, perm []int, to tensor.Shape) []string {
	mixed := make(tensor.Shape, len(perm))
	for i, p := range perm {
		mixed[i] = split[p]
	}
	x = b.With(graph.Ints("perm", perm...)).Op("Transpose", reshaped(b, x, from, split))
	return []string{reshaped(b, x, mixed, to)}
}

func expandDepthToSpace(c *lower.Call, b *graph.Builder) ([]string, error) {
	s, n, inner, err := blocksOf(c)
	if err != nil {
		return nil, err
	}
	if s[1]/n%n != 0 || s[1]%n != 0 {
		return nil, fmt.Errorf("%d channels do not hold blocks of %d × %d", s[1], n, n)
	}
	to := tensor.Shape{s[0], s[1] / n / n, s[2] * n, s[3] * n}
	if inner {
		return moved(b, c.Inputs[0], s, tensor.Shape{s[0], to[1], n, n, s[2], s[3]}, []int{0, 1, 4, 2, 5, 3}, to), nil
	}
	return moved(b, c.Inputs[0], s, tensor.Shape{s[0], n, n, to[1], s[2], s[3]}, []int{0, 3, 4, 1, 5, 2}, to), nil
}

func expandSpaceToDepth(c *lower.Call, b *graph.Builder) ([]string, error) {
	s, n, inner, err := blocksOf(c)
	if err != nil {
		return nil, err
	}
	if s[2]%n != 0 || s[3]%n != 0 {
		return nil, fmt.Errorf("%d × %d pixels are not whole blocks of %d × %d", s[2], s[3], n, n)
	}
	to := tensor.Shape{s[0], s[1] * n * n, s[2] / n, s[3] / n}
	perm := []int{0, 3, 5, 1, 2, 4}
	if inner {
		perm = []int{0, 1, 3, 5, 2, 4}
	}
	return moved(b, c.Inputs[0], s, tensor.Shape{s[0], s[1], to[2], n, to[3], n}, perm, to), nil
}

// expandCenterCropPad cuts the middle out of each axis, or puts zeros around
// it. Of an odd number, the smaller half is in front.
func expandCenterCropPad(c *lower.Call, b *graph.Builder) ([]string, error) {
	s := c.In[0].Shape
	want, err := intsInput(c, 1)
	if err != nil {
		return nil, err
	}
	named := intsAttr(c, "axes")
	if c.Node.Attr("axes") == nil {
		for a := range s {
			named = append(named, a)
		}
	}
	if _, err := axesOf(named, len(s)); err != nil {
		return nil, err
	}
	if len(want) != len(named) {
		return nil, fmt.Errorf("%d extents are given for %d axes", len(want), len(named))
	}
	y, pads := c.Inputs[0], make([]int, 2*len(s))
	padded := false
	for i, n := range want {
		a, _ := axisOf(named[i], len(s))
		if n < 0 || n > tensor.MaxDim {
			return nil, fmt.Errorf("extent %d is out of range", n)
		}
		if more := n - s[a]; more > 0 {
			padded = true
			pads[a], pads[len(s)+a] = more/2, more-more/2
		} else if more < 0 {
			first := -more / 2
			y = b.Op("Slice", y, b.Ints(first), b.Ints(first+n), b.Ints(a))
		}
	}
	if padded {
		y = b.Op("Pad", y, b.Ints(pads...))
	}
	return []string{b.Op("Identity", y)}, nil
}

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

// floatTable returns a constant of a float type.
func floatTable(c *lower.Call, t tensor.DType, s tensor.Shape, f func(i int) float64) (*tensor.Tensor, error) {
	x, err := c.Account.NewConst(t, s)
	if err != nil {
		return nil, err
	}
	for i := range x.Len() {
		x.Set(i, tensor.FloatWord(t, f(i)))
	}
	return x, nil
}

// intTable returns a constant of int64.
func intTable(c *lower.Call, s tensor.Shape, f func(i int) int) (*tensor.Tensor, error) {
	x, err := c.Account.NewConst(tensor.Int64, s)
	if err != nil {
		return nil, err
	}
	for i := range x.Len() {
		x.Set(i, tensor.Word(f(i)))
	}
	return x, nil
}
