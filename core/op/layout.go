package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Shapes: the same elements seen otherwise. Hardly any of these emits anything.

var _ = define(
	Def{Name: "Shape", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{graph.Int("start", 0), graph.Int("end", 1<<62)}, Lower: lowerShape},
	Def{Name: "Reshape", Min: 2, Max: 2, Outputs: 1, Attrs: []graph.Attr{graph.Int("allowzero", 0)}, Lower: lowerReshape, Grad: reshapeGrad},
	Def{Name: "Flatten", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{graph.Int("axis", 1)}, Lower: lowerFlatten, Grad: reshapeGrad},
	Def{Name: "Squeeze", Min: 1, Max: 2, Outputs: 1, Lower: lowerSqueeze, Grad: reshapeGrad},
	Def{Name: "Unsqueeze", Min: 2, Max: 2, Outputs: 1, Lower: lowerUnsqueeze, Grad: reshapeGrad},
	Def{Name: "Transpose", Min: 1, Max: 1, Outputs: 1, Attrs: []graph.Attr{graph.Ints("perm")}, Lower: lowerTranspose,
		Grad: func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
			perm, err := c.permutation()
			back := make([]int, len(perm))
			for i, p := range perm {
				back[p] = i
			}
			return []string{b.With(graph.Ints("perm", back...)).Op("Transpose", dy[0])}, err
		}},
	Def{Name: "Expand", Min: 2, Max: 2, Outputs: 1, Lower: lowerExpand,
		Grad: func(c *Call, b *graph.Builder, dy []string) ([]string, error) {
			return []string{c.unbroadcast(b, 0, dy[0]), ""}, nil
		}},
)

// reshapeGrad gives the gradient the shape of the input.
func reshapeGrad(c *Call, b *graph.Builder, dy []string) ([]string, error) {
	return c.only(reshaped(b, dy[0], c.Out[0].Shape, c.In[0].Shape)), nil
}

// reshaped gives a value another shape.
func reshaped(b *graph.Builder, value string, from, to tensor.Shape) string {
	if from.Equal(to) {
		return value
	}
	var attrs []graph.Attr
	if to.Elements() == 0 { // an extent of 0 would copy that of the input
		attrs = append(attrs, graph.Int("allowzero", 1))
	}
	return b.With(attrs...).Op("Reshape", value, b.Ints(to...))
}

func lowerShape(c *Call) ([]view, error) {
	s := c.In[0].Shape
	clamp := func(name string) int {
		v := c.int(name)
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
	return []view{c.l.hold(t)}, nil
}

func lowerReshape(c *Call) ([]view, error) {
	want, err := c.vector(1)
	if err != nil {
		return nil, err
	}
	x := c.In[0].Shape
	s, rest := tensor.Shape(slices.Clone(want)), -1
	for i, n := range s {
		switch {
		case n == 0 && !c.flag("allowzero"):
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
	return one(c.l.reshape(c.In[0], s))
}

func lowerFlatten(c *Call) ([]view, error) {
	x := c.In[0].Shape
	a := c.int("axis")
	if a < -len(x) || a > len(x) {
		return nil, fmt.Errorf("axis %d does not exist in a tensor with %d axes", a, len(x))
	}
	if a < 0 {
		a += len(x)
	}
	return one(c.l.reshape(c.In[0], tensor.Shape{x[:a].Elements(), x[a:].Elements()}))
}

func lowerSqueeze(c *Call) ([]view, error) {
	x := c.In[0].Shape
	var drop []int
	if c.has(1) {
		list, err := c.vector(1)
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
		case !slices.Contains(drop, a) && (c.has(1) || n != 1):
			s = append(s, n)
		}
	}
	return one(c.l.reshape(c.In[0], s))
}

func lowerUnsqueeze(c *Call) ([]view, error) {
	list, err := c.vector(1)
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
	return one(c.l.reshape(c.In[0], s))
}

// permutation returns the order that Transpose asks for: reversed by default.
func (c *Call) permutation() ([]int, error) {
	rank := len(c.In[0].Shape)
	perm := make([]int, rank)
	for i := range perm {
		perm[i] = rank - 1 - i
	}
	if a := c.Node.Attr("perm"); a != nil {
		perm = toInts(a.Ints)
		sorted, err := axesOf(perm, rank)
		if err != nil || len(sorted) != rank || slices.Min(append(perm, 0)) < 0 {
			return nil, fmt.Errorf("%v does not permute %d axes", perm, rank)
		}
	}
	return perm, nil
}

func toInts(v []int64) []int {
	out := make([]int, len(v))
	for i, x := range v {
		out[i] = int(x)
	}
	return out
}

func lowerTranspose(c *Call) ([]view, error) {
	perm, err := c.permutation()
	if err != nil {
		return nil, err
	}
	v, err := c.l.affine(c.In[0])
	if err != nil {
		return nil, err
	}
	return []view{v.transposed(perm)}, nil
}

func lowerExpand(c *Call) ([]view, error) {
	list, err := c.vector(1)
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
	v, err := c.l.affine(c.In[0])
	if err != nil {
		return nil, err
	}
	return []view{v.broadcast(s)}, nil
}
