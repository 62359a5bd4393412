package lower

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

// Infer types and lowers g, whose operators t holds, in profile p. An error names
// the node that is at fault.
func (t Table) Infer(g *graph.Graph, p Profile) (*Typed, error) { return t.infer(g, p, lowered) }

// InferOwn is Infer in profile fp32 for a graph that comes from no file, and is
// not differentiated: it may take any memory, and does not hold what gradients
// would need.
func (t Table) InferOwn(g *graph.Graph) (*Typed, error) { return t.infer(g, FP32, own) }

// purpose says what a graph is lowered for.
type purpose uint8

const (
	lowered   purpose = iota
	own               // it is no stranger's
	flattened         // to see what nodes that hold graphs come to
)

// lowering walks over a graph, node by node.
type lowering struct {
	table   Table
	emitter *Emitter
	names   *graph.Builder // names and constants of expansions
	values  map[string]View
	alias   map[string]string // output of a composite operator → that of its expansion
	draws   bool              // results follow from seeds

	flatten bool         // collect flat; the calls are of no use then
	flat    []graph.Node // those of the graph, and what nodes that hold graphs come to
	inside  int          // expansions of others
}

func (t Table) infer(g *graph.Graph, p Profile, why purpose) (*Typed, error) {
	if len(g.Nodes) > graph.MaxNodes {
		return nil, fmt.Errorf("the graph has %d nodes, limit %d", len(g.Nodes), graph.MaxNodes)
	}
	g, err := g.Canonical()
	if err != nil {
		return nil, err
	}
	l := &lowering{
		table: t, emitter: newEmitter(p), names: graph.Extend(g),
		values: map[string]View{}, alias: map[string]string{}, flatten: why == flattened,
	}
	if why == own {
		l.emitter.account.memory = math.MaxInt
	}
	if err := l.enter(g); err != nil {
		return nil, err
	}
	typed := &Typed{Graph: g, l: l}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		l.emitter.origin = graph.Origin{Node: i, Op: n.Op}
		calls, err := l.node(n)
		if err != nil {
			return nil, fmt.Errorf("node %q (%s): %w", n.Name, n.Op, err)
		}
		if why != own {
			typed.calls = append(typed.calls, calls...)
		}
	}
	return typed, typed.finish()
}

// enter types the inputs and initializers.
func (l *lowering) enter(g *graph.Graph) error {
	if err := l.emitter.account.Afford(graphSize(g)); err != nil {
		return err
	}
	for i, in := range g.Inputs {
		if err := in.Shape.Check(); err != nil || !in.Type.Valid() {
			return fmt.Errorf("input %q has type %v%v, which is not supported", in.Name, in.Type, in.Shape)
		}
		l.values[in.Name] = whole(graph.Ref{Kind: graph.RefSlot, Index: i}, in.Type, in.Shape)
	}
	for _, c := range g.Consts {
		if c.Tensor == nil {
			return fmt.Errorf("initializer %q has no value", c.Name)
		}
		l.values[c.Name] = l.emitter.Const(c.Tensor)
	}
	return nil
}

// finish types the outputs and makes each a tensor of its own.
func (t *Typed) finish() error {
	t.Outputs = slices.Clone(t.Outputs)
	for i, o := range t.Outputs {
		v, err := t.l.emitter.plain(t.l.values[o.Name])
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
	if l.flatten && l.inside == 0 && !c.holdsGraph() {
		flat := *c.Node
		flat.Inputs = slices.Clone(flat.Inputs)
		l.flat = append(l.flat, flat)
	}
	if c.op.Lower != nil {
		calls = []*Call{c}
		l.emitter.lasting = c.op.Deferred
		c.Out, err = c.op.Lower(c, l.emitter)
		l.emitter.lasting = false
	} else {
		calls, err = l.expand(c)
	}
	if err != nil {
		return nil, err
	}
	if len(c.Out) < len(n.Outputs) {
		return nil, fmt.Errorf("it gives %d outputs, but %d are named", len(c.Out), len(n.Outputs))
	}
	if err := c.Account.Afford(callSize(c)); err != nil {
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
	if !c.holdsGraph() {
		l.inside++
		defer func() { l.inside-- }()
	}
	if err := l.detach(c); err != nil {
		return nil, err
	}
	outputs, err := c.op.Expand(c, l.names)
	if err == nil {
		err = c.Settle()
	}
	if err != nil {
		return nil, err
	}
	calls = c.inner
	for _, o := range outputs {
		c.Out = append(c.Out, l.values[o])
	}
	if c.op.Grad != nil {
		return []*Call{c}, nil
	}
	if l.flatten && !c.holdsGraph() {
		return nil, nil
	}
	for i := range min(len(outputs), len(c.Outputs)) {
		l.alias[c.Outputs[i]] = outputs[i]
	}
	return calls, nil
}

// Settle lowers what the expansion of c has so far, so that it can look at the
// values before it goes on, and a long one is refused early.
func (c *Call) Settle() error {
	l := c.l
	built := l.names.Graph()
	for _, k := range built.Consts[c.held:] {
		if err := c.Account.Afford(constBytes + min(2*len(k.Tensor.Bytes()), dedupBelow)); err != nil { // larger ones are paid for
			return err
		}
		l.values[k.Name] = l.emitter.Const(k.Tensor)
	}
	if err := c.Account.Afford(nodesSize(built.Nodes[c.built:])); err != nil {
		return err
	}
	for _, n := range built.Nodes[c.built:] { // expansions of these follow them there
		inner, err := l.node(&n)
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
	for _, i := range c.op.Settings {
		if !c.Has(i) {
			continue
		}
		t, err := c.Known(c.In[i])
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

// Draws reports whether some node of t draws by chance: other runtimes may draw
// other numbers for it.
func (t *Typed) Draws() bool { return t.l.draws }

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
