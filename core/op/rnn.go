package op

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/tensor"
)

// Recurrent layers, written out step by step. What the inputs of all steps add
// to the gates is one product; each step adds what the state adds.

var _ = define(
	lower.Operator{Name: "RNN", Min: 3, Max: 6, Outputs: 2, Attrs: recurrentAttrs, Expand: inFloat32(recurrent(1, "Tanh"))},
	lower.Operator{Name: "GRU", Min: 3, Max: 6, Outputs: 2, Attrs: append(slices.Clone(recurrentAttrs), graph.Int("linear_before_reset", 0)),
		Expand: inFloat32(recurrent(3, "Sigmoid", "Tanh"))},
	lower.Operator{Name: "LSTM", Min: 3, Max: 8, Outputs: 3, Attrs: append(slices.Clone(recurrentAttrs), graph.Int("input_forget", 0)),
		Expand: inFloat32(recurrent(4, "Sigmoid", "Tanh", "Tanh"))},
)

var recurrentAttrs = []graph.Attr{
	graph.Floats("activation_alpha"), graph.Floats("activation_beta"), graph.Strings("activations"), graph.Float("clip", 0),
	graph.String("direction", "forward"), graph.Int("hidden_size", 0), graph.Int("layout", 0),
}

// Inputs of recurrent layers.
const (
	inX = iota
	inWeights
	inStateWeights
	inBias
	inLengths
	inHidden
	inCell
	inPeepholes
)

// recurrence is one direction of a recurrent layer.
type recurrence struct {
	*lower.Call
	b                          *graph.Builder
	gates                      int
	steps, batch, width, cells int
	which, of                  int      // this direction, of so many
	act                        []string // the activations, with their alphas and betas
	alpha, beta                []graph.Attr
	weights                    []string // of the state: those of all gates, or of z and r, and of h
	bias                       string   // of the state, unless it is added to the inputs
	peepholes                  []string // of i, o and f
}

// recurrent expands a layer with the given number of gates and default
// activations.
func recurrent(gates int, defaults ...string) expandFunc {
	return func(c *lower.Call, b *graph.Builder) ([]string, error) {
		r, err := newRecurrence(c, b, gates)
		if err != nil {
			return nil, err
		}
		x := c.Inputs[inX]
		if c.Flag("layout") {
			x = b.With(graph.Ints("perm", 1, 0, 2)).Op("Transpose", x)
		}
		if err := r.activations(defaults); err != nil {
			return nil, err
		}
		act, alpha, beta := r.act, r.alpha, r.beta
		var y, hidden, cell []string
		for r.which = range r.of {
			n := len(defaults)
			r.act, r.alpha, r.beta = act[r.which*n:][:n], alpha[r.which*n:][:n], beta[r.which*n:][:n]
			out, h, k, err := r.run(x, r.which == 1 || c.Text("direction") == "reverse")
			if err != nil {
				return nil, err
			}
			y, hidden, cell = append(y, out), append(hidden, h), append(cell, k)
		}
		join := func(list []string, a int, perm ...int) string {
			v := b.With(graph.Int("axis", a)).Op("Concat", list...)
			if c.Flag("layout") {
				v = b.With(graph.Ints("perm", perm...)).Op("Transpose", v)
			}
			return v
		}
		outputs := []string{join(y, 1, 2, 0, 1, 3), join(hidden, 0, 1, 0, 2)}
		if gates == 4 {
			outputs = append(outputs, join(cell, 0, 1, 0, 2))
		}
		return outputs, nil
	}
}

// newRecurrence checks the shapes of the inputs.
func newRecurrence(c *lower.Call, b *graph.Builder, gates int) (*recurrence, error) {
	t, x, w := c.In[inX].Type, c.In[inX].Shape.Clone(), c.In[inStateWeights].Shape
	if len(x) != 3 || len(w) != 3 || !t.Float() {
		return nil, fmt.Errorf("inputs of %v%v and weights of the state of shape %v should be floats with 3 axes", t, x, w)
	}
	if c.Flag("layout") {
		x[0], x[1] = x[1], x[0]
	}
	r := &recurrence{Call: c, b: b, gates: gates, steps: x[0], batch: x[1], width: x[2], cells: w[2], of: 1}
	switch d := c.Text("direction"); d {
	case "forward", "reverse":
	case "bidirectional":
		r.of = 2
	default:
		return nil, fmt.Errorf("direction %q is not supported; use forward, reverse or bidirectional", d)
	}
	state := tensor.Shape{r.of, r.batch, r.cells}
	if c.Flag("layout") {
		state = tensor.Shape{r.batch, r.of, r.cells}
	}
	for i, want := range []tensor.Shape{
		inWeights: {r.of, gates * r.cells, r.width}, inStateWeights: {r.of, gates * r.cells, r.cells}, inBias: {r.of, 2 * gates * r.cells},
		inLengths: {r.batch}, inHidden: state, inCell: state, inPeepholes: {r.of, 3 * r.cells},
	} {
		if i == inX || !c.Has(i) {
			continue
		}
		of := t
		if i == inLengths {
			of = c.In[i].Type
		}
		if !c.In[i].Shape.Equal(want) || c.In[i].Type != of {
			return nil, fmt.Errorf("input %q is %v%v, but should be %v%v", c.Inputs[i], c.In[i].Type, c.In[i].Shape, of, want)
		}
	}
	if n := c.Int("hidden_size"); n != 0 && n != r.cells {
		return nil, fmt.Errorf("hidden_size is %d, but the weights of the state have shape %v", n, w)
	}
	if r.steps < 1 || r.steps > maxSteps {
		return nil, fmt.Errorf("the sequence has %d steps, and may have 1 to %d", r.steps, maxSteps)
	}
	return r, nil
}

// parameters of activations, in the order in which lists give them.
var activations = map[string]struct {
	op          string
	alpha, beta bool
}{
	"relu": {op: "Relu"}, "tanh": {op: "Tanh"}, "sigmoid": {op: "Sigmoid"}, "softsign": {op: "Softsign"}, "softplus": {op: "Softplus"},
	"affine": {"Affine", true, true}, "scaledtanh": {"ScaledTanh", true, true}, "hardsigmoid": {"HardSigmoid", true, true},
	"leakyrelu": {"LeakyRelu", true, false}, "thresholdedrelu": {"ThresholdedRelu", true, false}, "elu": {"Elu", true, false},
}

// activations reads the activations of all directions. Each takes its alpha and
// beta, if it has any, from the front of their lists while those last.
func (r *recurrence) activations(defaults []string) error {
	names := r.AttrOrDefault("activations").Strings
	if len(names) == 0 {
		for range r.of {
			names = append(names, defaults...)
		}
	}
	if len(names) != r.of*len(defaults) {
		return fmt.Errorf("%d activations are given, but it takes %d", len(names), r.of*len(defaults))
	}
	alphas, betas := r.AttrOrDefault("activation_alpha").Floats, r.AttrOrDefault("activation_beta").Floats
	take := func(name string, from *[]float32) (a graph.Attr) {
		if len(*from) > 0 {
			a, *from = graph.Float(name, (*from)[0]), (*from)[1:]
		}
		return a
	}
	for _, name := range names {
		f, ok := activations[strings.ToLower(name)]
		if !ok {
			return fmt.Errorf("activation %q is not supported", name)
		}
		var alpha, beta graph.Attr
		if f.alpha {
			alpha = take("alpha", &alphas)
		}
		if f.beta {
			beta = take("beta", &betas)
		}
		r.act, r.alpha, r.beta = append(r.act, f.op), append(r.alpha, alpha), append(r.beta, beta)
	}
	return nil
}

// apply writes activation i of x, clipped first.
func (r *recurrence) apply(i int, x string) string {
	b := r.b
	if r.Node.Attr("clip") != nil {
		limit := float64(r.Float("clip"))
		x = b.Op("Max", b.Op("Min", x, floatLike(r.Call, b, limit)), floatLike(r.Call, b, -limit))
	}
	given := func(a graph.Attr, otherwise float64) string {
		if a.Kind != 0 {
			otherwise = float64(a.Float)
		}
		return floatLike(r.Call, b, otherwise)
	}
	switch r.act[i] {
	case "Affine":
		return b.Op("Add", b.Op("Mul", x, given(r.alpha[i], 1)), given(r.beta[i], 0))
	case "ScaledTanh":
		return b.Op("Mul", b.Op("Tanh", b.Op("Mul", x, given(r.beta[i], 1))), given(r.alpha[i], 1))
	}
	var attrs []graph.Attr
	for _, a := range []graph.Attr{r.alpha[i], r.beta[i]} {
		if a.Kind != 0 {
			attrs = append(attrs, a)
		}
	}
	return b.With(attrs...).Op(r.act[i], x)
}

// own returns this direction's part of input i, which has it on the first axis
// or, if it is the state in the other layout, on the second.
func (r *recurrence) own(i int) string {
	a := 0
	if i == inHidden || i == inCell {
		a = r.Int("layout")
	}
	b := r.b
	return b.Op("Squeeze", b.Op("Slice", r.Inputs[i], b.Ints(r.which), b.Ints(r.which+1), b.Ints(a)), b.Ints(a))
}

// split cuts the last axis into parts that hold so many gates each.
func (r *recurrence) split(x string, gates ...int) []string {
	sizes := make([]int, len(gates))
	for i, n := range gates {
		sizes[i] = n * r.cells
	}
	return r.b.With(graph.Int("axis", -1)).Ops("Split", len(gates), x, r.b.Ints(sizes...))
}

// start returns the state before the first step.
func (r *recurrence) start(i int) string {
	if r.Has(i) {
		return r.own(i)
	}
	return r.b.Op("Expand", scalarLike(r.Call, r.b, 0), r.b.Ints(r.batch, r.cells))
}

// run writes all steps of one direction over x [steps, batch, width]: the
// output of each, and the last state.
func (r *recurrence) run(x string, reverse bool) (y, hidden, cell string, err error) {
	b := r.b
	turned := b.With(graph.Ints("perm", 1, 0))
	in := b.Op("MatMul", x, turned.Op("Transpose", r.own(inWeights)))
	r.weights, r.bias, r.peepholes = []string{turned.Op("Transpose", r.own(inStateWeights))}, "", nil
	if r.gates == 3 && !r.resetsLast() {
		r.weights = r.split(r.weights[0], 2, 1)
	}
	if r.Has(inBias) {
		bias := r.split(r.own(inBias), r.gates, r.gates)
		if r.resetsLast() {
			r.bias = bias[1]
		} else {
			bias[0] = b.Op("Add", bias[0], bias[1])
		}
		in = b.Op("Add", in, bias[0])
	}
	if r.Has(inPeepholes) {
		r.peepholes = r.split(r.own(inPeepholes), 1, 1, 1)
	}
	lengths := ""
	if r.Has(inLengths) {
		lengths = b.Op("Unsqueeze", b.Cast(r.Inputs[inLengths], tensor.Int64), b.Ints(1))
	}
	hidden = r.start(inHidden)
	if r.gates == 4 {
		cell = r.start(inCell)
	}
	inputs, outs := apart(b, in, r.steps, 0), make([]string, r.steps)
	for i := range r.steps {
		t := i
		if reverse {
			t = r.steps - 1 - i
		}
		h, k := r.step(b.Op("Squeeze", inputs[t], b.Ints(0)), hidden, cell)
		out := h
		if lengths != "" { // beyond its end, a sequence gives zeros and keeps its state
			within := b.Op("Less", int64Const(b, t), lengths)
			out = b.Op("Where", within, h, scalarLike(r.Call, b, 0))
			h = b.Op("Where", within, h, hidden)
			if k != "" {
				k = b.Op("Where", within, k, cell)
			}
		}
		hidden, cell = h, k
		outs[t] = b.Op("Unsqueeze", out, b.Ints(0, 1))
		if err := r.Settle(); err != nil { // or a long sequence is all there before it is refused
			return "", "", "", fmt.Errorf("step %d: %w", i, err)
		}
	}
	y = b.With(graph.Int("axis", 0)).Op("Concat", outs...)
	hidden = b.Op("Unsqueeze", hidden, b.Ints(0))
	if cell != "" {
		cell = b.Op("Unsqueeze", cell, b.Ints(0))
	}
	return y, hidden, cell, nil
}

// resetsLast reports whether the state's part of the hidden gate of a GRU is
// multiplied by the reset gate as a whole.
func (r *recurrence) resetsLast() bool { return r.gates == 3 && r.Flag("linear_before_reset") }

// step returns the state after x [batch, gates·cells], the gates' part of the
// input.
func (r *recurrence) step(x, h, k string) (hidden, cell string) {
	b := r.b
	switch r.gates {
	case 1:
		return r.apply(0, b.Op("Add", x, b.Op("MatMul", h, r.weights[0]))), ""
	case 3:
		return r.reset(x, h), ""
	}
	parts := r.split(b.Op("Add", x, b.Op("MatMul", h, r.weights[0])), 1, 1, 1, 1)
	gate := func(i int, k string, peephole int) string {
		v := parts[i]
		if r.peepholes != nil {
			v = b.Op("Add", v, b.Op("Mul", r.peepholes[peephole], k))
		}
		return r.apply(0, v)
	}
	input := gate(0, k, 0)
	forget := ""
	if r.Flag("input_forget") {
		forget = b.Op("Sub", scalarLike(r.Call, b, 1), input)
	} else {
		forget = gate(2, k, 2)
	}
	cell = b.Op("Add", b.Op("Mul", forget, k), b.Op("Mul", input, r.apply(1, parts[3])))
	return b.Op("Mul", gate(1, cell, 1), r.apply(2, cell)), cell
}

// reset is the step of a GRU: z updates, r resets.
func (r *recurrence) reset(x, h string) string {
	b := r.b
	in := r.split(x, 2, 1)
	var state, inner string
	if r.resetsLast() {
		all := b.Op("MatMul", h, r.weights[0])
		if r.bias != "" {
			all = b.Op("Add", all, r.bias)
		}
		both := r.split(all, 2, 1)
		state, inner = both[0], both[1]
	} else {
		state = b.Op("MatMul", h, r.weights[0])
	}
	gates := r.split(r.apply(0, b.Op("Add", in[0], state)), 1, 1)
	z, reset := gates[0], gates[1]
	if r.resetsLast() {
		inner = b.Op("Mul", reset, inner)
	} else {
		inner = b.Op("MatMul", b.Op("Mul", reset, h), r.weights[1])
	}
	news := r.apply(1, b.Op("Add", in[1], inner))
	return b.Op("Add", b.Op("Mul", b.Op("Sub", scalarLike(r.Call, b, 1), z), news), b.Op("Mul", z, h))
}
