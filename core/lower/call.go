package lower

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Call is an operator applied to inputs of known types: what its Lower, Expand
// and Grad are given.
type Call struct {
	*graph.Node
	In, Out []View   // zero where an optional input is not given; Out is set for Grad
	Account *Account // that what the operator computes and holds is charged to

	op *Operator
	l  *lowering

	// of an expansion
	built, held int // nodes and constants of the builder that are lowered
	inner       []*Call
}

// call checks a node against the table and the values it reads.
func (l *lowering) call(n *graph.Node) (*Call, error) {
	o, ok := l.table[n.Op]
	if !ok {
		return nil, errors.New("the operator is not supported; write the model without it, in those of docs/spec/operators.md")
	}
	given := len(n.Inputs)
	for given > 0 && n.Inputs[given-1] == "" {
		given--
	}
	if given < o.Min || o.Max >= 0 && given > o.Max {
		return nil, fmt.Errorf("it has %d inputs, but takes %s", given, between(o.Min, o.Max))
	}
	if len(n.Outputs) < 1 || o.Outputs >= 0 && len(n.Outputs) > o.Outputs {
		return nil, fmt.Errorf("it has %d outputs, but gives %s", len(n.Outputs), between(1, o.Outputs))
	}
	for _, a := range n.Attrs {
		i := slices.IndexFunc(o.Attrs, func(b graph.Attr) bool { return a.Name == b.Name })
		if i < 0 {
			return nil, fmt.Errorf("attribute %q is not supported; remove it if the model can do without", a.Name)
		}
		if a.Kind != o.Attrs[i].Kind {
			return nil, fmt.Errorf("attribute %q is %v, but should be %v", a.Name, a.Kind, o.Attrs[i].Kind)
		}
	}
	c := &Call{
		Node: &graph.Node{Name: n.Name, Op: n.Op, Outputs: n.Outputs, Attrs: n.Attrs},
		In:   make([]View, given), Account: l.emitter.account, op: o, l: l,
	}
	for i, name := range n.Inputs[:given] {
		c.Inputs = append(c.Inputs, l.resolve(name))
		if name == "" {
			if i < o.Min {
				return nil, fmt.Errorf("input %d is missing", i)
			}
			continue
		}
		if c.In[i], ok = l.values[name]; !ok {
			return nil, fmt.Errorf("input %q is not defined", name)
		}
	}
	return c, nil
}

func between(lo, hi int) string {
	switch {
	case hi < 0:
		return fmt.Sprintf("at least %d", lo)
	case lo == hi:
		return fmt.Sprint(lo)
	}
	return fmt.Sprintf("%d to %d", lo, hi)
}

// Has reports whether input i is given.
func (c *Call) Has(i int) bool { return i < len(c.Inputs) && c.Inputs[i] != "" }

// AttrOrDefault returns the attribute called name, which the operator may have, or
// its default.
func (c *Call) AttrOrDefault(name string) graph.Attr {
	if a := c.Node.Attr(name); a != nil {
		return *a
	}
	i := slices.IndexFunc(c.op.Attrs, func(a graph.Attr) bool { return a.Name == name })
	return c.op.Attrs[i]
}

// Int returns an integer attribute, or its default.
func (c *Call) Int(name string) int { return int(c.AttrOrDefault(name).Int) }

// Flag reports whether an integer attribute, or its default, is not 0.
func (c *Call) Flag(name string) bool { return c.AttrOrDefault(name).Int != 0 }

// Float returns a float attribute, or its default.
func (c *Call) Float(name string) float32 { return c.AttrOrDefault(name).Float }

// Text returns a string attribute, or its default.
func (c *Call) Text(name string) string { return c.AttrOrDefault(name).String }

// Constant returns the value of input i. The error is an [OpenError] if that is
// known only when the program runs.
func (c *Call) Constant(i int) (*tensor.Tensor, error) {
	t, err := c.Known(c.In[i])
	if err == nil && t == nil {
		err = c.l.open(c.Inputs[i], c.In[i])
	}
	return t, err
}

// Known returns the value of v if it is constant, otherwise nil. What computing
// it takes is charged.
func (c *Call) Known(v View) (*tensor.Tensor, error) { return c.l.emitter.known(v) }

// Value returns a value by its name: an input, or what an expansion has built and
// settled. It is zero if there is none.
func (c *Call) Value(name string) View { return c.l.values[name] }

// MarkDraws notes that the operator's result follows from a seed.
func (c *Call) MarkDraws() { c.l.draws = true }

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
	if c.op.Grad == nil {
		return nil, fmt.Errorf("node %q (%s): it has no gradient; freeze the parameters before it", c.Name, c.Op)
	}
	dx, err := c.op.Grad(c, b, dy)
	if err != nil {
		return nil, fmt.Errorf("node %q (%s), gradient: %w", c.Name, c.Op, err)
	}
	return dx, nil
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

// Open returns the error for a value that must be known beforehand and is not.
func (c *Call) Open(name string) error { return c.l.open(name, c.l.values[name]) }

func (l *lowering) open(name string, v View) error { return &OpenError{name, l.sources(v)} }

// sources returns the inputs of the graph that a value follows from.
func (l *lowering) sources(v View) (names []string) {
	read := l.emitter.slots(v.src)
	for i, in := range l.names.Graph().Inputs {
		if read[i] {
			names = append(names, in.Name)
		}
	}
	return names
}
