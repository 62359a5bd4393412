package op

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Operators that hold graphs. A program has neither branches nor loops: these are what they come
// to when conditions and numbers of rounds are known. Where a condition is not known, they are
// both sides and a choice between their outputs. The inputs of a node that its graphs use from
// around them follow the others.

var _ = define(
	lower.Operator{Name: "If", Min: 1, Max: -1, Outputs: -1, Expand: expandIf, Attrs: []graph.Attr{
		{Name: "then_branch", Kind: graph.AttrGraph}, {Name: "else_branch", Kind: graph.AttrGraph},
	}},
	lower.Operator{Name: "Loop", Min: 0, Max: -1, Outputs: -1, Expand: expandLoop, Attrs: []graph.Attr{{Name: "body", Kind: graph.AttrGraph}}},
	lower.Operator{Name: "Scan", Min: 1, Max: -1, Outputs: -1, Expand: expandScan, Attrs: []graph.Attr{
		{Name: "body", Kind: graph.AttrGraph}, graph.Int("num_scan_inputs", 0),
		graph.Ints("scan_input_axes"), graph.Ints("scan_input_directions"), graph.Ints("scan_output_axes"), graph.Ints("scan_output_directions"),
	}},
)

// knownBool returns the value of a boolean, if it is known.
func knownBool(c *lower.Call, name string) (value, known bool, err error) {
	v := c.Value(name)
	if v.Type != tensor.Bool || v.Shape.Elements() != 1 {
		return false, false, fmt.Errorf("condition %q is %v%v, but should be one bool", name, v.Type, v.Shape)
	}
	t, err := c.Known(v)
	if err != nil || t == nil {
		return false, false, err
	}
	return t.At(0) != 0, true, nil
}

// choose takes each value of one list or of the other, which must be alike.
func choose(c *lower.Call, b *graph.Builder, cond string, yes, no []string) ([]string, error) {
	scalar := b.Op("Reshape", cond, b.Ints())
	out := make([]string, len(yes))
	for i := range yes {
		if yes[i] == no[i] {
			out[i] = yes[i]
			continue
		}
		y, n := c.Value(yes[i]), c.Value(no[i])
		if y.Type != n.Type || !y.Shape.Equal(n.Shape) {
			return nil, fmt.Errorf("value %d is %v%v or %v%v", i, y.Type, y.Shape, n.Type, n.Shape)
		}
		out[i] = b.Op("Where", scalar, yes[i], no[i])
	}
	return out, c.Settle()
}

func expandIf(c *lower.Call, b *graph.Builder) ([]string, error) {
	yes, n, err := c.Body("then_branch")
	if err != nil {
		return nil, err
	}
	no, m, err := c.Body("else_branch")
	if err != nil {
		return nil, err
	}
	around := len(yes.Inputs) - n
	if n != 0 || m != 0 || len(no.Inputs) != around || len(c.Node.Inputs) > 1+around || len(yes.Outputs) != len(no.Outputs) {
		return nil, errors.New("its branches have inputs, or not as many outputs as each other")
	}
	cond, known, err := knownBool(c, c.Inputs[0])
	if err != nil {
		return nil, err
	}
	inputs := inputNames(c, 1, around)
	if known {
		if !cond {
			yes = no
		}
		return c.Import(b, yes, inputs, map[string]string{})
	}
	first, err := c.Import(b, yes, inputs, map[string]string{})
	if err != nil {
		return nil, err
	}
	second, err := c.Import(b, no, inputs, map[string]string{})
	if err != nil {
		return nil, err
	}
	out, err := choose(c, b, c.Inputs[0], first, second)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", c.Open(c.Inputs[0]), err)
	}
	return out, nil
}

func expandLoop(c *lower.Call, b *graph.Builder) ([]string, error) {
	g, own, err := c.Body("body")
	if err != nil {
		return nil, err
	}
	carried := own - 2
	stacked := len(g.Outputs) - 1 - carried
	if carried < 0 || stacked < 0 || len(c.Inputs) > len(g.Inputs) {
		return nil, fmt.Errorf("its body takes %d values and gives %d, where the loop has %d inputs", own, len(g.Outputs), len(c.Inputs))
	}
	rounds := -1 // as many as the condition says
	if c.Has(0) {
		t, err := c.Constant(0)
		if err != nil {
			return nil, err
		}
		if t.Type != tensor.Int64 || t.Len() != 1 {
			return nil, fmt.Errorf("input %q is %v%v, but should be one int64", c.Inputs[0], t.Type, t.Shape)
		}
		rounds = max(0, int(int64(t.At(0))))
	}
	l := loop{Call: c, b: b, g: g, carried: inputNames(c, 2, carried), around: inputNames(c, own, len(g.Inputs)-own), consts: map[string]string{}, stacks: make([][]string, stacked)}
	if c.Has(1) {
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
	*lower.Call
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
	v, known, err := knownBool(l.Call, cond)
	switch {
	case err != nil:
		return err
	case known:
		l.over = l.over || !v
	case strict:
		return l.Open(cond)
	case l.live == "":
		l.live = cond
	default:
		l.live = l.b.Op("And", l.b.Op("Reshape", l.live, l.b.Ints()), l.b.Op("Reshape", cond, l.b.Ints()))
		return l.Settle()
	}
	return nil
}

func (l *loop) round(i int, strict bool) error {
	iter := l.b.Const(tensor.Scalar(int64(i)))
	inputs := slices.Concat([]string{iter, boolConst(l.b, true)}, l.carried, l.around)
	out, err := l.Import(l.b, l.g, inputs, l.consts)
	if err != nil {
		return err
	}
	next := out[1 : 1+len(l.carried)]
	if l.live != "" {
		if next, err = choose(l.Call, l.b, l.live, next, l.carried); err != nil {
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
			empty, err := emptyStack(l.Call, l.b, s[0], 0)
			if err != nil {
				return nil, err
			}
			out = append(out, empty)
		}
		return out, nil
	}
	for _, s := range l.stacks {
		out = append(out, stack(l.b, s, 0))
	}
	return out, nil
}

// emptyStack is a stack of none of the values that are like one.
func emptyStack(c *lower.Call, b *graph.Builder, like string, axis int) (string, error) {
	v := c.Value(like)
	t, err := tensor.New(v.Type, slices.Insert(v.Shape.Clone(), axis, 0))
	if err != nil {
		return "", err
	}
	return b.Const(t), nil
}

// stack puts values one after another along a new axis.
func stack(b *graph.Builder, list []string, axis int) string {
	parts := make([]string, len(list))
	for i, name := range list {
		parts[i] = b.Op("Unsqueeze", name, b.Ints(axis))
	}
	return b.With(graph.Int("axis", axis)).Op("Concat", parts...)
}

func expandScan(c *lower.Call, b *graph.Builder) ([]string, error) {
	g, own, err := c.Body("body")
	if err != nil {
		return nil, err
	}
	scanned := c.Int("num_scan_inputs")
	states := own - scanned
	if scanned < 1 || states < 0 || len(g.Outputs) < states || len(c.Inputs) > len(g.Inputs) || len(c.Inputs) < own {
		return nil, fmt.Errorf("its body takes %d values, %d of them scanned, and gives %d, where the node has %d inputs", own, scanned, len(g.Outputs), len(c.Inputs))
	}
	axes, err := intsPerInput(c, "scan_input_axes", scanned)
	if err != nil {
		return nil, err
	}
	backward, err := intsPerInput(c, "scan_input_directions", scanned)
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
	state, around := inputNames(c, 0, states), inputNames(c, own, len(g.Inputs)-own)
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
		if err := c.Settle(); err != nil {
			return nil, err
		}
		out, err := c.Import(b, g, slices.Concat(state, parts, around), consts)
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
	return stackAll(c, b, slices.Clone(state), stacks)
}

// stackAll adds the stacks of a Scan to its states.
func stackAll(c *lower.Call, b *graph.Builder, out []string, stacks [][]string) ([]string, error) {
	axes, err := intsPerInput(c, "scan_output_axes", len(stacks))
	if err != nil {
		return nil, err
	}
	backward, err := intsPerInput(c, "scan_output_directions", len(stacks))
	if err != nil {
		return nil, err
	}
	for k, s := range stacks {
		axis, err := axisOf(axes[k], len(c.Value(s[0]).Shape)+1)
		if err != nil {
			return nil, err
		}
		if backward[k] != 0 {
			slices.Reverse(s)
		}
		out = append(out, stack(b, s, axis))
	}
	return out, nil
}

// intsPerInput returns a list with a number for each of n, zeros by default.
func intsPerInput(c *lower.Call, name string, n int) ([]int, error) {
	a := c.Node.Attr(name)
	if a == nil {
		return make([]int, n), nil
	}
	if len(a.Ints) != n {
		return nil, fmt.Errorf("attribute %q has %d numbers, but should have %d", name, len(a.Ints), n)
	}
	return toInts(a.Ints), nil
}

// boolConst is the name of a constant.
func boolConst(b *graph.Builder, v bool) string {
	return b.Const(tensor.Must(tensor.Bools(tensor.Shape{}, v)))
}

// inputNames returns the names of n inputs from the first on.
func inputNames(c *lower.Call, first, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = inputName(c, first+i)
	}
	return out
}
