package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Shapes: the same elements seen otherwise. Hardly any of these emits anything.

var _ = define(
	lower.Operator{Name: "Shape", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{graph.Int("start", 0), graph.Int("end", 1<<62)}, Lower: lowerShape},
	lower.Operator{Name: "Reshape", Min: 2, Max: 2, Outputs: 1, Attrs: []graph.Attr{graph.Int("allowzero", 0)}, Lower: lowerReshape, Grad: reshapeGrad},
	lower.Operator{Name: "Flatten", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{graph.Int("axis", 1)}, Lower: lowerFlatten, Grad: reshapeGrad},
	lower.Operator{Name: "Squeeze", Min: 1, Max: 2, Outputs: 1, Lower: lowerSqueeze, Grad: reshapeGrad},
	lower.Operator{Name: "Unsqueeze", Min: 2, Max: 2, Outputs: 1, Lower: lowerUnsqueeze, Grad: reshapeGrad},
	lower.Operator{Name: "Size", Min: 1, Max: 1, Outputs: 1,
		Lower: func(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
			return []lower.View{e.Const(tensor.Scalar(int64(c.In[0].Shape.Elements())))}, nil
		}},
)

// reshapeGrad gives the gradient the shape of the input.
func reshapeGrad(c *lower.Call, b *graph.Builder, dy []string) ([]string, error) {
	return firstGrad(c, reshaped(b, dy[0], c.Out[0].Shape, c.In[0].Shape)), nil
}

func lowerShape(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	s := c.In[0].Shape
	clamp := func(name string) int {
		v := c.Int(name)
		if v < 0 {
			v += len(s)
		}
		return min(max(v, 0), len(s))
	}
	start := clamp("start")
	part := s[start:max(start, clamp("end"))]
	t, err := tensor.New(tensor.Int64, tensor.Shape{len(part)})
	if err != nil {
		return nil, err
	}
	for i, n := range part {
		t.Set(i, tensor.Word(n))
	}
	return []lower.View{e.Const(t)}, nil
}

func lowerReshape(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	want, err := intsInput(c, 1)
	if err != nil {
		return nil, err
	}
	x := c.In[0].Shape
	s, rest := tensor.Shape(slices.Clone(want)), -1
	for i, n := range s {
		switch {
		case n == 0 && !c.Flag("allowzero"):
			if i >= len(x) {
				return nil, fmt.Errorf("shape %v copies axis %d of %v, which does not exist", want, i, x)
			}
			s[i] = x[i]
		case n == -1 && rest < 0:
			rest, s[i] = i, 1
		case n < 0:
			return nil, fmt.Errorf("shape %v has the extent %d", want, n)
		}
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	if rest >= 0 {
		n := s.Elements()
		if n == 0 || x.Elements()%n != 0 {
			return nil, fmt.Errorf("shape %v does not fit the %d elements of %v", want, x.Elements(), x)
		}
		s[rest] = x.Elements() / n
	}
	return one(e.Reshape(c.In[0], s))
}

func lowerFlatten(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	x := c.In[0].Shape
	a := c.Int("axis")
	if a < -len(x) || a > len(x) {
		return nil, fmt.Errorf("axis %d does not exist in a tensor with %d axes", a, len(x))
	}
	if a < 0 {
		a += len(x)
	}
	return one(e.Reshape(c.In[0], tensor.Shape{x[:a].Elements(), x[a:].Elements()}))
}

func lowerSqueeze(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	x := c.In[0].Shape
	var drop []int
	if c.Has(1) {
		list, err := intsInput(c, 1)
		if err != nil {
			return nil, err
		}
		if drop, err = axesOf(list, len(x)); err != nil {
			return nil, err
		}
	}
	s := tensor.Shape{}
	for a, n := range x {
		switch {
		case slices.Contains(drop, a) && n != 1:
			return nil, fmt.Errorf("axis %d of %v is not 1", a, x)
		case !slices.Contains(drop, a) && (c.Has(1) || n != 1):
			s = append(s, n)
		}
	}
	return one(e.Reshape(c.In[0], s))
}

func lowerUnsqueeze(c *lower.Call, e *lower.Emitter) ([]lower.View, error) {
	list, err := intsInput(c, 1)
	if err != nil {
		return nil, err
	}
	added, err := axesOf(list, len(list)+len(c.In[0].Shape))
	if err != nil {
		return nil, err
	}
	s := c.In[0].Shape.Clone()
	for _, a := range added {
		s = slices.Insert(s, a, 1)
	}
	return one(e.Reshape(c.In[0], s))
}
