package op

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Call is an operator applied to inputs of known types.
type Call struct {
	*graph.Node
	In, Out []view // zero where an optional input is not given

	def *Def
	l   *lowering

	// of an expansion
	built, held int // nodes and constants of the builder that are lowered
	inner       []*Call
}

// Type returns the element type and shape of output i.
func (c *Call) Type(i int) (tensor.DType, tensor.Shape) { return c.Out[i].Type, c.Out[i].Shape }

// Renamed returns the call with other names for the same values.
func (c *Call) Renamed(names map[string]string) *Call {
	rename := func(list []string) []string {
		list = slices.Clone(list)
		for i, name := range list {
			if to, ok := names[name]; ok {
				list[i] = to
			}
		}
		return list
	}
	node, out := *c.Node, *c
	node.Inputs, node.Outputs = rename(node.Inputs), rename(node.Outputs)
	out.Node = &node
	return &out
}

// Gradient writes the gradients of the inputs, given those of the outputs; an
// empty name is no gradient.
func (c *Call) Gradient(b *graph.Builder, dy []string) ([]string, error) {
	if c.def.Grad == nil {
		return nil, fmt.Errorf("node %q (%s): it has no gradient; freeze the parameters before it", c.Name, c.Op)
	}
	dx, err := c.def.Grad(c, b, dy)
	if err != nil {
		return nil, fmt.Errorf("node %q (%s), gradient: %w", c.Name, c.Op, err)
	}
	return dx, nil
}

// only returns the gradients of an operator that has one for its first input
// alone.
func (c *Call) only(dx string) []string {
	out := make([]string, len(c.In))
	out[0] = dx
	return out
}

// has reports whether input i is given.
func (c *Call) has(i int) bool { return i < len(c.Inputs) && c.Inputs[i] != "" }

// attr returns the attribute called name, or its default.
func (c *Call) attr(name string) graph.Attr {
	if a := c.Node.Attr(name); a != nil {
		return *a
	}
	i := slices.IndexFunc(c.def.Attrs, func(a graph.Attr) bool { return a.Name == name })
	return c.def.Attrs[i]
}

func (c *Call) int(name string) int       { return int(c.attr(name).Int) }
func (c *Call) flag(name string) bool     { return c.attr(name).Int != 0 }
func (c *Call) float(name string) float32 { return c.attr(name).Float }
func (c *Call) text(name string) string   { return c.attr(name).String }

// constant returns the value of input i, which must be known beforehand.
func (c *Call) constant(i int) (*tensor.Tensor, error) {
	t, err := c.l.known(c.In[i])
	if err == nil && t == nil {
		err = c.l.open(c.Inputs[i], c.In[i])
	}
	return t, err
}

// OpenError is about a value that an operator must know beforehand and that
// follows from inputs of the graph.
type OpenError struct {
	Value  string
	Inputs []string // that it follows from, in the order of the graph
}

// Error implements error.
func (e *OpenError) Error() string {
	return fmt.Sprintf("input %q must be constant: make it an initializer, or fix the shapes it follows from; it depends on the inputs %q", e.Value, e.Inputs)
}

func (l *lowering) open(name string, v view) error { return &OpenError{name, l.sources(v)} }

// sources returns the inputs of the graph that a value follows from.
func (l *lowering) sources(v view) (names []string) {
	live := l.live([]graph.Ref{v.src})
	read := map[int]bool{}
	note := func(r graph.Ref) {
		if r.Kind == graph.RefSlot {
			read[r.Index] = true
		}
	}
	note(v.src)
	for i, n := range l.nodes {
		for _, r := range n.From {
			if live[i] {
				note(r)
			}
		}
	}
	for i, in := range l.names.Graph().Inputs {
		if read[i] {
			names = append(names, in.Name)
		}
	}
	return names
}

// vector returns the constant integers of input i, which has at most one axis.
func (c *Call) vector(i int) ([]int, error) {
	t, err := c.constant(i)
	if err != nil {
		return nil, err
	}
	if !t.Type.Integer() || len(t.Shape) > 1 || t.Len() > maxVector {
		return nil, fmt.Errorf("input %q is %v%v, but should be a short list of integers", c.Inputs[i], t.Type, t.Shape)
	}
	out := make([]int, t.Len())
	for j := range out {
		out[j] = int(int64(t.At(j)))
	}
	return out, nil
}

// maxVector bounds the lists of axes, extents and sizes that operators take.
const maxVector = 1 << 16

// axisOf returns axis a of a tensor, counted from the end if negative.
func axisOf(a, rank int) (int, error) {
	if a < -rank || a >= rank {
		return 0, fmt.Errorf("axis %d does not exist in a tensor with %d axes", a, rank)
	}
	if a < 0 {
		a += rank
	}
	return a, nil
}

// axesOf returns the given axes in ascending order; none may come twice.
func axesOf(list []int, rank int) ([]int, error) {
	out := make([]int, len(list))
	for i, a := range list {
		var err error
		if out[i], err = axisOf(a, rank); err != nil {
			return nil, err
		}
	}
	slices.Sort(out)
	if len(slices.Compact(slices.Clone(out))) != len(list) {
		return nil, fmt.Errorf("axes %v name one twice", list)
	}
	return out, nil
}

// want returns an error unless input i has the type.
func (c *Call) want(i int, t tensor.DType) error {
	if c.In[i].Type != t {
		return fmt.Errorf("input %q is %v, but should be %v", c.Inputs[i], c.In[i].Type, t)
	}
	return nil
}

// alike returns an error unless all inputs from the first on have one type.
func (c *Call) alike(first int) error {
	for i := first; i < len(c.In); i++ {
		if !c.has(i) {
			return fmt.Errorf("input %d is missing", i)
		}
		if c.In[i].Type != c.In[first].Type {
			return fmt.Errorf("inputs %q and %q are %v and %v; cast one of them", c.Inputs[first], c.Inputs[i], c.In[first].Type, c.In[i].Type)
		}
	}
	return nil
}

func one(v view, err error) ([]view, error) { return []view{v}, err }
