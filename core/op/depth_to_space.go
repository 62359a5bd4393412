package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Images with blocks of pixels as channels, and back.

var _ = define(
	lower.Operator{Name: "DepthToSpace", Min: 1, Max: 1, Outputs: 1, Attrs: blockAttrs, Expand: expandDepthToSpace},
	lower.Operator{Name: "SpaceToDepth", Min: 1, Max: 1, Outputs: 1, Attrs: blockAttrs, Expand: expandSpaceToDepth},
)

var blockAttrs = []graph.Attr{graph.Int("blocksize", 0), graph.String("mode", "DCR")}

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
