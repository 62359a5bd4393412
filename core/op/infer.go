package op

import (
	"fmt"
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Typed is a graph in canonical order with the type of every value, and the
// primitives it was lowered to.
type Typed struct {
	*graph.Graph
	l       *lowering
	calls   []*Call
	outputs []graph.Ref
}

// Infer types and lowers g in profile fp32. An error names the node that is at
// fault.
func Infer(g *graph.Graph) (*Typed, error) { return FP32.Infer(g) }

// InferOwn is Infer for a graph that comes from no file, and is not differentiated: it may
// take any memory, and does not hold what gradients would need.
func InferOwn(g *graph.Graph) (*Typed, error) { return FP32.infer(g, own) }

// purpose says what a graph is lowered for.
type purpose uint8

const (
	lowered   purpose = iota
	own               // it is no stranger's
	flattened         // to see what nodes that hold graphs come to
)

func (p Profile) infer(g *graph.Graph, why purpose) (*Typed, error) {
	if len(g.Nodes) > graph.MaxNodes {
		return nil, fmt.Errorf("the graph has %d nodes, limit %d", len(g.Nodes), graph.MaxNodes)
	}
	g, err := g.Canonical()
	if err != nil {
		return nil, err
	}
	t := &Typed{Graph: g, l: newLowering(g, p)}
	t.l.flatten = why == flattened
	if why == own {
		t.l.memory = math.MaxInt
	}
	if err := t.l.afford(graphSize(g)); err != nil {
		return nil, err
	}
	for i, in := range g.Inputs {
		if err := in.Shape.Check(); err != nil || !in.Type.Valid() {
			return nil, fmt.Errorf("input %q has type %v%v, which is not supported", in.Name, in.Type, in.Shape)
		}
		t.l.values[in.Name] = whole(graph.Ref{Kind: graph.RefSlot, Index: i}, in.Type, in.Shape)
	}
	for _, c := range g.Consts {
		if c.Tensor == nil {
			return nil, fmt.Errorf("initializer %q has no value", c.Name)
		}
		t.l.values[c.Name] = t.l.hold(c.Tensor)
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		t.l.origin = graph.Origin{Node: i, Op: n.Op}
		calls, err := t.l.node(n)
		if err != nil {
			return nil, fmt.Errorf("node %q (%s): %w", n.Name, n.Op, err)
		}
		if why != own {
			t.calls = append(t.calls, calls...)
		}
	}
	return t, t.finish()
}

// finish types the outputs and makes each a tensor of its own.
func (t *Typed) finish() error {
	t.Outputs = slices.Clone(t.Outputs)
	for i, o := range t.Outputs {
		v, err := t.l.plain(t.l.values[o.Name])
		if err != nil {
			return fmt.Errorf("output %q: %w", o.Name, err)
		}
		t.Outputs[i].Type, t.Outputs[i].Shape = v.Type, v.Shape
		t.outputs = append(t.outputs, v.src)
	}
	return nil
}

// node lowers a node and returns the calls by which it is differentiated: its
// own, or those of its expansion.
func (l *lowering) node(n *graph.Node) (calls []*Call, err error) {
	c, err := l.call(n)
	if err != nil {
		return nil, err
	}
	if l.flatten && l.inside == 0 && !c.holds() {
		flat := *c.Node
		flat.Inputs = slices.Clone(flat.Inputs)
		l.flat = append(l.flat, flat)
	}
	if c.def.Lower != nil {
		calls = []*Call{c}
		c.Out, err = c.def.Lower(c)
	} else {
		calls, err = l.expand(c)
	}
	if err != nil {
		return nil, err
	}
	if len(c.Out) < len(n.Outputs) {
		return nil, fmt.Errorf("it gives %d outputs, but %d are named", len(c.Out), len(n.Outputs))
	}
	if err := l.afford(c.size()); err != nil {
		return nil, err
	}
	for i, name := range n.Outputs {
		if name != "" {
			l.values[name] = c.Out[i]
		}
	}
	return calls, nil
}

// expand lowers a composite operator through its expansion.
func (l *lowering) expand(c *Call) (calls []*Call, err error) {
	c.built = len(l.names.Graph().Nodes)
	c.held = len(l.names.Graph().Consts)
	if !c.holds() {
		l.inside++
		defer func() { l.inside-- }()
	}
	if err := l.detach(c); err != nil {
		return nil, err
	}
	outputs, err := c.def.Expand(c, l.names)
	if err == nil {
		err = c.settle()
	}
	if err != nil {
		return nil, err
	}
	calls = c.inner
	for _, o := range outputs {
		c.Out = append(c.Out, l.values[o])
	}
	if c.def.Grad != nil {
		return []*Call{c}, nil
	}
	if l.flatten && !c.holds() {
		return nil, nil
	}
	for i := range min(len(outputs), len(c.Outputs)) {
		l.alias[c.Outputs[i]] = outputs[i]
	}
	return calls, nil
}

// settle lowers what the expansion of c has so far, so that it can look at the
// values before it goes on.
func (c *Call) settle() error {
	built := c.l.names.Graph()
	for _, k := range built.Consts[c.held:] {
		if err := c.l.afford(constBytes + min(2*len(k.Tensor.Bytes()), dedupBelow)); err != nil { // larger ones are paid for
			return err
		}
		c.l.values[k.Name] = c.l.hold(k.Tensor)
	}
	if err := c.l.afford(nodesSize(built.Nodes[c.built:])); err != nil {
		return err
	}
	for _, n := range built.Nodes[c.built:] { // expansions of these follow them there
		inner, err := c.l.node(&n)
		if err != nil {
			return fmt.Errorf("%s of its expansion: %w", n.Op, err)
		}
		c.inner = append(c.inner, inner...)
	}
	c.built, c.held = len(built.Nodes), len(built.Consts)
	return nil
}

// detach gives the constant settings of a call names of their own, so that no
// gradient reaches the initializers that they are.
func (l *lowering) detach(c *Call) error {
	for _, i := range c.def.Settings {
		if !c.has(i) {
			continue
		}
		t, err := l.known(c.In[i])
		if err != nil {
			return err
		}
		if t != nil {
			c.Inputs[i] = l.names.Const(t)
		}
	}
	return nil
}

// Type returns the element type and shape of a value.
func (t *Typed) Type(name string) (tensor.DType, tensor.Shape) {
	v := t.l.values[name]
	return v.Type, v.Shape
}

// Differentiable returns the graph with every operator that states no gradient
// replaced by its expansion, and the calls of its nodes, in order.
func (t *Typed) Differentiable() (*graph.Graph, []*Call) {
	g := &graph.Graph{Name: t.Name, Inputs: t.Inputs, Outputs: slices.Clone(t.Outputs), Consts: t.l.names.Graph().Consts}
	for i, o := range g.Outputs {
		g.Outputs[i].Name = t.l.resolve(o.Name)
	}
	for _, c := range t.calls {
		g.Nodes = append(g.Nodes, *c.Node)
	}
	return g, t.calls
}

// resolve follows the names of composite operators' outputs to those of their
// expansions.
func (l *lowering) resolve(name string) string {
	for {
		inner, ok := l.alias[name]
		if !ok {
			return name
		}
		name = inner
	}
}
