package op

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Operators that hold graphs. A program has neither branches nor loops: these
// are what they come to when conditions and numbers of rounds are known, and
// where a condition is not, both sides and a choice between their outputs. The
// inputs of a node that its graphs use from around them follow the others.

var _ = define(
	Def{Name: "If", Min: 1, Max: -1, Outputs: -1, Expand: expandIf, Attrs: []graph.Attr{
		{Name: "then_branch", Kind: graph.AttrGraph}, {Name: "else_branch", Kind: graph.AttrGraph},
	}},
	Def{Name: "Loop", Min: 0, Max: -1, Outputs: -1, Expand: expandLoop, Attrs: []graph.Attr{{Name: "body", Kind: graph.AttrGraph}}},
	Def{Name: "Scan", Min: 1, Max: -1, Outputs: -1, Expand: expandScan, Attrs: []graph.Attr{
		{Name: "body", Kind: graph.AttrGraph}, graph.Int("num_scan_inputs", 0),
		graph.Ints("scan_input_axes"), graph.Ints("scan_input_directions"), graph.Ints("scan_output_axes"), graph.Ints("scan_output_directions"),
	}},
)

// holds reports whether the operator holds graphs.
func (c *Call) holds() bool {
	return slices.ContainsFunc(c.def.Attrs, func(a graph.Attr) bool { return a.Kind == graph.AttrGraph })
}

// Flatten returns g with what nodes that hold graphs come to in their place.
func Flatten(g *graph.Graph) (*graph.Graph, error) {
	if !slices.ContainsFunc(g.Nodes, func(n graph.Node) bool {
		return slices.ContainsFunc(n.Attrs, func(a graph.Attr) bool { return a.Kind == graph.AttrGraph })
	}) {
		return g, nil
	}
	t, err := FP32.infer(g, flattened)
	if err != nil {
		return nil, err
	}
	flat := &graph.Graph{Name: g.Name, Inputs: t.Inputs, Outputs: t.Outputs, Consts: t.l.names.Graph().Consts, Nodes: t.l.flat}
	for _, o := range g.Outputs {
		if inner := t.l.resolve(o.Name); inner != o.Name {
			flat.Nodes = append(flat.Nodes, graph.Node{Op: "Identity", Inputs: []string{inner}, Outputs: []string{o.Name}})
		}
	}
	return flat.Canonical()
}

// body returns a graph that the node holds and how many inputs it has of its
// own.
func (c *Call) body(name string) (g *graph.Graph, own int, err error) {
	a := c.attr(name)
	if a.Graph == nil || a.Int < 0 || int(a.Int) > len(a.Graph.Inputs) {
		return nil, 0, fmt.Errorf("attribute %q is missing", name)
	}
	return a.Graph, len(a.Graph.Inputs) - int(a.Int), nil
}

// put writes what a graph computes of the given inputs, and returns its outputs.
// Constants that it has put before keep their names.
func (c *Call) put(b *graph.Builder, g *graph.Graph, inputs []string, consts map[string]string) ([]string, error) {
	if err := c.l.afford(roundBytes + len(g.Outputs)*nameBytes + namesSize(g, c.Name+"/")); err != nil {
		return nil, err
	}
	bind := map[string]string{}
	for i, v := range g.Inputs {
		bind[v.Name] = inputs[i]
	}
	for _, k := range g.Consts {
		if name, held := consts[k.Name]; held {
			bind[k.Name] = name
		}
	}
	names := b.Import(c.Name+"/", g, bind)
	for _, k := range g.Consts {
		consts[k.Name] = names[k.Name]
	}
	out := make([]string, len(g.Outputs))
	for i, o := range g.Outputs {
		out[i] = names[o.Name]
	}
	return out, c.settle()
}

// named returns the name of input i, empty if it is not given.
func (c *Call) named(i int) string {
	if c.has(i) {
		return c.Inputs[i]
	}
	return ""
}

// rest returns the names of n inputs from the first on.
func (c *Call) rest(first, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = c.named(first + i)
	}
	return out
}

// boolean returns the value of a boolean, if it is known.
func (c *Call) boolean(name string) (value, known bool, err error) {
	v := c.l.values[name]
	if v.Type != tensor.Bool || v.Shape.Elements() != 1 {
		return false, false, fmt.Errorf("condition %q is %v%v, but should be one bool", name, v.Type, v.Shape)
	}
	t, err := c.l.known(v)
	if err != nil || t == nil {
		return false, false, err
	}
	return t.At(0) != 0, true, nil
}

// choose takes each value of one list or of the other, which must be alike.
func (c *Call) choose(b *graph.Builder, cond string, yes, no []string) ([]string, error) {
	scalar := b.Op("Reshape", cond, b.Ints())
	out := make([]string, len(yes))
	for i := range yes {
		if yes[i] == no[i] {
			out[i] = yes[i]
			continue
		}
		y, n := c.l.values[yes[i]], c.l.values[no[i]]
		if y.Type != n.Type || !y.Shape.Equal(n.Shape) {
			return nil, fmt.Errorf("value %d is %v%v or %v%v", i, y.Type, y.Shape, n.Type, n.Shape)
		}
		out[i] = b.Op("Where", scalar, yes[i], no[i])
	}
	return out, c.settle()
}

func expandIf(c *Call, b *graph.Builder) ([]string, error) {
	yes, n, err := c.body("then_branch")
	if err != nil {
		return nil, err
	}
	no, m, err := c.body("else_branch")
	if err != nil {
		return nil, err
	}
	around := len(yes.Inputs) - n
	if n != 0 || m != 0 || len(no.Inputs) != around || len(c.Node.Inputs) > 1+around || len(yes.Outputs) != len(no.Outputs) {
		return nil, errors.New("its branches have inputs, or not as many outputs as each other")
	}
	cond, known, err := c.boolean(c.Inputs[0])
	if err != nil {
		return nil, err
	}
	inputs := c.rest(1, around)
	if known {
		if !cond {
			yes = no
		}
		return c.put(b, yes, inputs, map[string]string{})
	}
	first, err := c.put(b, yes, inputs, map[string]string{})
	if err != nil {
		return nil, err
	}
	second, err := c.put(b, no, inputs, map[string]string{})
	if err != nil {
		return nil, err
	}
	out, err := c.choose(b, c.Inputs[0], first, second)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", c.l.open(c.Inputs[0], c.In[0]), err)
	}
	return out, nil
}

// boolean is the name of a constant.
func boolean(b *graph.Builder, v bool) string {
	return b.Const(tensor.Must(tensor.Bools(tensor.Shape{}, v)))
}

func expandLoop(c *Call, b *graph.Builder) ([]string, error) {
	g, own, err := c.body("body")
	if err != nil {
		return nil, err
	}
	carried := own - 2
	stacked := len(g.Outputs) - 1 - carried
	if carried < 0 || stacked < 0 || len(c.Inputs) > len(g.Inputs) {
		return nil, fmt.Errorf("its body takes %d values and gives %d, where the loop has %d inputs", own, len(g.Outputs), len(c.Inputs))
	}
	rounds := -1 // as many as the condition says
	if c.has(0) {
		t, err := c.constant(0)
		if err != nil {
			return nil, err
		}
		if t.Type != tensor.Int64 || t.Len() != 1 {
			return nil, fmt.Errorf("input %q is %v%v, but should be one int64", c.Inputs[0], t.Type, t.Shape)
		}
		rounds = max(0, int(int64(t.At(0))))
	}
	l := loop{Call: c, b: b, g: g, carried: c.rest(2, carried), around: c.rest(own, len(g.Inputs)-own), consts: map[string]string{}, stacks: make([][]string, stacked)}
	if c.has(1) {
		if err := l.judge(c.Inputs[1], rounds < 0 || stacked > 0); err != nil {
			return nil, err
		}
	}
	for i := 0; i != rounds && !l.over; i++ {
		if err := l.round(i, rounds < 0 || stacked > 0); err != nil {
			return nil, fmt.Errorf("round %d: %w", i, err)
		}
	}
	return l.outputs()
}

// loop is one that is being unrolled.
type loop struct {
	*Call
	b       *graph.Builder
	g       *graph.Graph
	carried []string
	around  []string
	consts  map[string]string
	stacks  [][]string
	over    bool
	live    string // whether this round counts, where that follows from inputs
}

// judge takes in a condition of what follows. It must be known, unless rounds
// that do not count can be computed and left out.
func (l *loop) judge(cond string, strict bool) error {
	v, known, err := l.boolean(cond)
	switch {
	case err != nil:
		return err
	case known:
		l.over = l.over || !v
	case strict:
		return l.Call.l.open(cond, l.Call.l.values[cond])
	case l.live == "":
		l.live = cond
	default:
		l.live = l.b.Op("And", l.b.Op("Reshape", l.live, l.b.Ints()), l.b.Op("Reshape", cond, l.b.Ints()))
		return l.settle()
	}
	return nil
}

func (l *loop) round(i int, strict bool) error {
	iter := l.b.Const(tensor.Scalar(int64(i)))
	inputs := slices.Concat([]string{iter, boolean(l.b, true)}, l.carried, l.around)
	out, err := l.put(l.b, l.g, inputs, l.consts)
	if err != nil {
		return err
	}
	next := out[1 : 1+len(l.carried)]
	if l.live != "" {
		if next, err = l.choose(l.b, l.live, next, l.carried); err != nil {
			return err
		}
	}
	l.carried = next
	for k, name := range out[1+len(next):] {
		l.stacks[k] = append(l.stacks[k], name)
	}
	return l.judge(out[0], strict)
}

func (l *loop) outputs() ([]string, error) {
	out := slices.Clone(l.carried)
	if len(l.stacks) == 0 {
		return out, nil
	}
	if len(l.stacks[0]) == 0 { // a round that no output reads tells the types
		probe := *l
		probe.over, probe.stacks = false, make([][]string, len(l.stacks))
		if err := probe.round(0, false); err != nil {
			return nil, fmt.Errorf("the loop has no round, and one would fail: %w", err)
		}
		for _, s := range probe.stacks {
			empty, err := l.empty(s[0], 0)
			if err != nil {
				return nil, err
			}
			out = append(out, empty)
		}
		return out, nil
	}
	for _, s := range l.stacks {
		out = append(out, l.stack(l.b, s, 0))
	}
	return out, nil
}

// empty is a stack of none of the values that are like one.
func (c *Call) empty(like string, axis int) (string, error) {
	v := c.l.values[like]
	t, err := tensor.New(v.Type, slices.Insert(v.Shape.Clone(), axis, 0))
	if err != nil {
		return "", err
	}
	return c.l.names.Const(t), nil
}

// stack puts values one after another along a new axis.
func (c *Call) stack(b *graph.Builder, list []string, axis int) string {
	parts := make([]string, len(list))
	for i, name := range list {
		parts[i] = b.Op("Unsqueeze", name, b.Ints(axis))
	}
	return b.With(graph.Int("axis", axis)).Op("Concat", parts...)
}

func expandScan(c *Call, b *graph.Builder) ([]string, error) {
	g, own, err := c.body("body")
	if err != nil {
		return nil, err
	}
	scanned := c.int("num_scan_inputs")
	states := own - scanned
	if scanned < 1 || states < 0 || len(g.Outputs) < states || len(c.Inputs) > len(g.Inputs) || len(c.Inputs) < own {
		return nil, fmt.Errorf("its body takes %d values, %d of them scanned, and gives %d, where the node has %d inputs", own, scanned, len(g.Outputs), len(c.Inputs))
	}
	axes, err := c.perInput("scan_input_axes", scanned)
	if err != nil {
		return nil, err
	}
	backward, err := c.perInput("scan_input_directions", scanned)
	if err != nil {
		return nil, err
	}
	rounds := -1
	for k := range axes {
		v := c.In[states+k]
		if axes[k], err = axisOf(axes[k], len(v.Shape)); err != nil {
			return nil, err
		}
		if n := v.Shape[axes[k]]; rounds >= 0 && n != rounds {
			return nil, fmt.Errorf("scanned inputs have %d and %d parts", rounds, n)
		}
		rounds = v.Shape[axes[k]]
	}
	state, around := c.rest(0, states), c.rest(own, len(g.Inputs)-own)
	stacks := make([][]string, len(g.Outputs)-states)
	consts := map[string]string{}
	for i := range rounds {
		parts := make([]string, scanned)
		for k := range parts {
			at := i
			if backward[k] != 0 {
				at = rounds - 1 - i
			}
			part := b.Op("Slice", c.Inputs[states+k], b.Ints(at), b.Ints(at+1), b.Ints(axes[k]))
			parts[k] = b.Op("Squeeze", part, b.Ints(axes[k]))
		}
		if err := c.settle(); err != nil {
			return nil, err
		}
		out, err := c.put(b, g, slices.Concat(state, parts, around), consts)
		if err != nil {
			return nil, fmt.Errorf("round %d: %w", i, err)
		}
		state = out[:states]
		for k, name := range out[states:] {
			stacks[k] = append(stacks[k], name)
		}
	}
	if rounds == 0 && len(stacks) > 0 {
		return nil, errors.New("nothing is scanned")
	}
	return c.stackAll(b, slices.Clone(state), stacks)
}

// stackAll adds the stacks of a Scan to its states.
func (c *Call) stackAll(b *graph.Builder, out []string, stacks [][]string) ([]string, error) {
	axes, err := c.perInput("scan_output_axes", len(stacks))
	if err != nil {
		return nil, err
	}
	backward, err := c.perInput("scan_output_directions", len(stacks))
	if err != nil {
		return nil, err
	}
	for k, s := range stacks {
		axis, err := axisOf(axes[k], len(c.l.values[s[0]].Shape)+1)
		if err != nil {
			return nil, err
		}
		if backward[k] != 0 {
			slices.Reverse(s)
		}
		out = append(out, c.stack(b, s, axis))
	}
	return out, nil
}

// perInput returns a list with a number for each of n, zeros by default.
func (c *Call) perInput(name string, n int) ([]int, error) {
	a := c.Node.Attr(name)
	if a == nil {
		return make([]int, n), nil
	}
	if len(a.Ints) != n {
		return nil, fmt.Errorf("attribute %q has %d numbers, but should have %d", name, len(a.Ints), n)
	}
	return toInts(a.Ints), nil
}
