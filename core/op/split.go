package op

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
)

var _ = define(
	lower.Operator{Name: "Split", Min: 1, Max: 2, Outputs: -1, Attrs: []graph.Attr{graph.Int("axis", 0), graph.Int("num_outputs", 0)}, Lower: lowerSplit,
		Grad: func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
			parts := make([]string, len(dy))
			for i, d := range dy {
				if parts[i] = d; d == "" {
					parts[i] = zeros(b, c.Out[i].Shape)
				}
			}
			return firstGrad(c, b.With(graph.Int("axis", c.Int("axis"))).Op("Concat", parts...)), nil
		}},
)

func lowerSplit(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	v, err := e.Affine(c.In[0])
	if err != nil {
		return nil, err
	}
	a, err := axisOf(c.Int("axis"), len(v.Shape))
	if err != nil {
		return nil, err
	}
	n := len(c.Outputs)
	var sizes []int
	if c.Has(1) {
		if sizes, err = intsInput(c, 1); err != nil {
			return nil, err
		}
	} else {
		if k := c.Int("num_outputs"); k != 0 && k != n {
			return nil, fmt.Errorf("it names %d outputs, but gives %d", n, k)
		}
		each := (v.Shape[a] + n - 1) / n
		for i := range n { // the last ones may be smaller
			sizes = append(sizes, max(0, min(each, v.Shape[a]-i*each)))
		}
	}
	if len(sizes) != n {
		return nil, fmt.Errorf("it names %d outputs, but gives %d", n, len(sizes))
	}
	out := make([]lower.View, n)
	at := 0
	for i, size := range sizes {
		if size < 0 || size > v.Shape[a]-at {
			return nil, fmt.Errorf("parts %v do not make up axis %d of %v", sizes, a, v.Shape)
		}
		out[i] = v.Sliced(a, at, 1, size)
		at += size
	}
	if at != v.Shape[a] {
		return nil, fmt.Errorf("parts %v do not make up axis %d of %v", sizes, a, v.Shape)
	}
	return out, nil
}
