package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
)

var _ = define(
	lower.Operator{Name: "Concat", Min: 1, Max: -1, Outputs: 1, Attrs: []graph.Attr{graph.Int("axis", 0)}, Lower: lowerConcat,
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			a, err := axisOf(c.Int("axis"), len(c.Out[0].Shape))
			if err != nil {
				return nil, err
			}
			sizes := make([]int, len(c.In))
			for i, v := range c.In {
				sizes[i] = v.Shape[a]
			}
			return b.With(graph.Int("axis", a)).Ops("Split", len(sizes), dy[0], b.Ints(sizes...)), nil
		}},
)

func lowerConcat(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	if err := wantOneType(c, 0); err != nil {
		return nil, err
	}
	rank := len(c.In[0].Shape)
	a, err := axisOf(c.Int("axis"), rank)
	if err != nil {
		return nil, err
	}
	s := c.In[0].Shape.Clone()
	for i, v := range c.In[1:] {
		same := v.Shape.Clone()
		if len(same) == rank {
			same[a] = s[a]
		}
		if !same.Equal(s) {
			return nil, fmt.Errorf("inputs %q and %q have shapes %v and %v, which may differ on axis %d alone", c.Inputs[0], c.Inputs[i+1], c.In[0].Shape, v.Shape, a)
		}
		s[a] += v.Shape[a]
		if err := s.Check(); err != nil {
			return nil, err
		}
	}
	return one(concatViews(e, c.In, a))
}
