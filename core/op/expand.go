package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

var _ = define(
	lower.Operator{Name: "Expand", Min: 2, Max: 2, Outputs: 1, Lower: lowerExpand,
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			return []string{unbroadcast(c, b, 0, dy[0]), ""}, nil
		}},
	lower.Operator{Name: "Tile", Min: 2, Max: 2, Outputs: 1, Expand: expandTile},
)

func lowerExpand(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	list, err := intsInput(c, 1)
	if err != nil {
		return nil, err
	}
	want := tensor.Shape(list)
	if err := want.Check(); err != nil {
		return nil, err
	}
	s, err := c.In[0].Shape.Broadcast(want)
	if err != nil {
		return nil, err
	}
	v, err := e.Affine(c.In[0])
	if err != nil {
		return nil, err
	}
	return []lower.View{v.Broadcast(s)}, nil
}

// expandTile repeats one axis after the other, the last one first.
func expandTile(c *lower.Call, b *graph.Builder) ([]string, error) {
	repeats, err := intsInput(c, 1)
	if err != nil {
		return nil, err
	}
	s := c.In[0].Shape.Clone()
	if len(repeats) != len(s) {
		return nil, fmt.Errorf("%d repeats are given for %d axes", len(repeats), len(s))
	}
	x := c.Inputs[0]
	for a, n := range slices.Backward(repeats) {
		if n < 0 || n > tensor.MaxDim {
			return nil, fmt.Errorf("axis %d is to be repeated %d times", a, n)
		}
		if n == 1 {
			continue
		}
		apart := tensor.Shape{s[:a].Elements(), 1, s[a:].Elements()}
		times := tensor.Shape{apart[0], n, apart[2]}
		x = reshaped(b, x, s, apart)
		x = b.Op("Expand", x, b.Ints(times...))
		s[a] *= n
		if err := s.Check(); err != nil {
			return nil, err
		}
		x = reshaped(b, x, times, s)
	}
	if x == c.Inputs[0] {
		x = b.Op("Identity", x)
	}
	return []string{x}, nil
}
