package op_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
)

// holding is an attribute with a graph of n inputs; the last ones, around many,
// are from around it.
func holding(name string, n, around int, build func(b *graph.Builder, in []string) []string) graph.Attr {
	b := graph.NewBuilder(name)
	in := make([]string, n)
	for i := range in {
		in[i] = b.Input("in", 0, nil)
	}
	for _, o := range build(b, in) {
		b.Output(o, 0, nil)
	}
	g, err := b.Graph().Canonical()
	if err != nil {
		panic(err)
	}
	return graph.Attr{Name: name, Kind: graph.AttrGraph, Graph: g, Int: int64(around)}
}

// branches are x·x and −x.
func branches() []graph.Attr {
	return []graph.Attr{
		holding("else_branch", 1, 1, func(b *graph.Builder, in []string) []string { return []string{b.Op("Neg", in[0])} }),
		holding("then_branch", 1, 1, func(b *graph.Builder, in []string) []string { return []string{b.Op("Mul", in[0], in[0])} }),
	}
}

func branched(in []array) []array {
	return pointwise(func(x []float64) float64 {
		if in[0].v[0] != 0 {
			return x[0] * x[0]
		}
		return -x[0]
	})(in[1:])
}

// growth multiplies what it carries by a value from around it and adds the
// number of the round, and gives every product.
var growth = holding("body", 4, 1, func(b *graph.Builder, in []string) []string {
	next := b.Op("Add", b.Op("Mul", in[2], in[3]), b.Cast(in[0], tensor.Float32))
	return []string{b.Op("Identity", in[1]), next, b.Op("Identity", next)}
})

func growthOf(rounds int) func(in []array) []array {
	return func(in []array) []array {
		x, w := in[2], in[3]
		stack := array{shape: append([]int{rounds}, x.shape...)}
		last := array{x.shape, slices.Clone(x.v)}
		for k := range rounds {
			for i := range last.v {
				last.v[i] = last.v[i]*w.v[0] + float64(k)
			}
			stack.v = append(stack.v, last.v...)
		}
		return []array{last, stack}
	}
}

// until adds a value to what it carries, while the sum is below 3.
var until = holding("body", 4, 1, func(b *graph.Builder, in []string) []string {
	next := b.Op("Add", in[2], in[3])
	return []string{b.Op("Less", next, b.Scalar(3)), next}
})

func below3(in []array) []array {
	x, w := in[2].v[0]+in[3].v[0], in[3].v[0]
	for x < 3 {
		x += w
	}
	return []array{{[]int{1}, []float64{x}}}
}

// runningSums gives the sum of what it has scanned so far, and twice it.
func runningSums(more ...graph.Attr) []graph.Attr {
	return append(more, graph.Int("num_scan_inputs", 1), holding("body", 2, 0, func(b *graph.Builder, in []string) []string {
		next := b.Op("Add", in[0], in[1])
		return []string{next, b.Op("Mul", next, b.Scalar(2))}
	}))
}

func scanned(in []array) []array {
	state, x := slices.Clone(in[0].v), in[1] // x is [2 3], scanned along axis 1 from its end
	out := array{shape: []int{2, 3}, v: make([]float64, 6)}
	for k := range 3 {
		for i := range 2 {
			state[i] += x.v[i*3+2-k]
			out.v[i*3+2-k] = 2 * state[i]
		}
	}
	return []array{{in[0].shape, state}, out}
}

var _ = add(
	sample{name: "If, known", op: "If", attrs: branches(), in: []arg{fixed(given(tensor.Bool, nil, 1)), f(2, 3)}, want: branched},
	sample{name: "If, known otherwise", op: "If", attrs: branches(), in: []arg{fixed(given(tensor.Bool, []int{1}, 0)), f(2, 3)}, want: branched},
	sample{name: "If, open", op: "If", attrs: branches(), in: []arg{given(tensor.Bool, []int{1}, 1), f(2, 3)}, want: branched},
	sample{name: "Loop", op: "Loop", attrs: []graph.Attr{growth}, in: []arg{list(3), none, f(2), f()}, outs: 2, want: growthOf(3)},
	sample{name: "Loop, no round", op: "Loop", attrs: []graph.Attr{growth}, in: []arg{list(0), none, f(2), f()}, outs: 2, want: growthOf(0)},
	sample{name: "Loop, refused", op: "Loop", attrs: []graph.Attr{growth}, in: []arg{list(3), fixed(given(tensor.Bool, nil, 0)), f(2), f()}, outs: 2, want: growthOf(0)},
	sample{name: "Loop, while", op: "Loop", attrs: []graph.Attr{until}, in: []arg{list(9), none, given(tensor.Float32, []int{1}, 0.25), given(tensor.Float32, []int{1}, 1)},
		want: below3},
	sample{name: "Loop, while, known", op: "Loop", attrs: []graph.Attr{until}, in: []arg{none, none, fixed(given(tensor.Float32, []int{1}, 0.25)), fixed(given(tensor.Float32, []int{1}, 1))},
		want: below3},
	sample{name: "Scan", op: "Scan", attrs: runningSums(graph.Ints("scan_input_axes", -1), graph.Ints("scan_input_directions", 1), graph.Ints("scan_output_axes", 1), graph.Ints("scan_output_directions", 1)),
		in: []arg{f(2), f(2, 3)}, outs: 2, want: scanned},
)

func TestHeldGraphsAreRefused(t *testing.T) {
	endless := holding("body", 2, 0, func(b *graph.Builder, in []string) []string { return []string{in[1]} })
	other := branches()
	other[0] = holding("else_branch", 1, 1, func(b *graph.Builder, in []string) []string { return []string{b.Op("ReduceSum", in[0])} })
	for name, c := range map[string]struct {
		sample sample
		want   string
	}{
		"endless":      {sample{op: "Loop", attrs: []graph.Attr{endless}, in: []arg{none, fixed(given(tensor.Bool, nil, 1))}}, "more than 52 MB"},
		"2^62 rounds":  {sample{op: "Loop", attrs: []graph.Attr{endless}, in: []arg{fixed(given(tensor.Int64, nil, 1<<62))}}, "more than 52 MB"},
		"open rounds":  {sample{op: "Loop", attrs: []graph.Attr{growth}, in: []arg{ints(tensor.Int64, 3, 3), none, f(2), f()}, outs: 2}, `input "x0" must be constant`},
		"open end":     {sample{op: "Loop", attrs: []graph.Attr{until}, in: []arg{none, none, f(1), f(1)}}, "must be constant"},
		"body":         {sample{op: "Loop", attrs: []graph.Attr{growth}, in: []arg{list(3), none, f(2)}, outs: 2}, "it has 1 inputs, but takes 2"},
		"other shapes": {sample{op: "If", attrs: other, in: []arg{bools(), f(2, 3)}}, `input "x0" must be constant`},
		"no condition": {sample{op: "If", attrs: branches(), in: []arg{f(), f(2)}}, "should be one bool"},
		"no branch":    {sample{op: "If", attrs: branches()[:1], in: []arg{bools(), f(2)}}, `attribute "then_branch" is missing`},
		"lists":        {sample{op: "Scan", attrs: runningSums(graph.Ints("scan_input_axes", 0, 0)), in: []arg{f(2), f(3, 2)}, outs: 2}, "has 2 numbers, but should have 1"},
		"no such axis": {sample{op: "Scan", attrs: runningSums(graph.Ints("scan_output_axes", 2)), in: []arg{f(2), f(3, 2)}, outs: 2}, "axis 2 does not exist"},
		"nothing":      {sample{op: "Scan", attrs: runningSums(), in: []arg{f(2), f(0, 2)}, outs: 2}, "nothing is scanned"},
	} {
		_, tensors := c.sample.draw()
		b, _, outputs := c.sample.build(tensors)
		for _, o := range outputs {
			b.Output(o, 0, nil)
		}
		if _, err := op.Infer(b.Graph(), lower.FP32); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, wanted %s", name, err, c.want)
		}
	}
	s := sample{op: "If", attrs: other, in: []arg{bools(), f(2, 3)}}
	_, tensors := s.draw()
	b, _, outputs := s.build(tensors)
	b.Output(outputs[0], 0, nil)
	_, err := op.Infer(b.Graph(), lower.FP32)
	var open *lower.OpenError
	if !errors.As(err, &open) || len(open.Inputs) != 1 || open.Inputs[0] != "x0" {
		t.Errorf("what the branch follows from: %v", err)
	}
}

// A flattened graph has no graphs in it, the same inputs and outputs, and
// lowers to the same program.
func TestFlatten(t *testing.T) {
	for _, s := range samples {
		if s.op != "If" && s.op != "Loop" && s.op != "Scan" {
			continue
		}
		_, tensors := s.draw()
		b, _, outputs := s.build(tensors)
		for _, o := range outputs {
			b.Output(b.Op("Gelu", o), 0, nil)
			b.Output(o, 0, nil)
		}
		flat, err := op.Flatten(b.Graph())
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
			continue
		}
		gelus := 0
		for _, n := range flat.Nodes {
			if n.Op == s.op {
				t.Errorf("%s: there is still a %s", s.name, n.Op)
			}
			if n.Op == "Gelu" {
				gelus++
			}
		}
		if gelus != len(outputs) {
			t.Errorf("%s: %d of %d other composite operators are left", s.name, gelus, len(outputs))
		}
		whole, err := op.Infer(b.Graph(), lower.FP32)
		if err != nil {
			t.Fatal(err)
		}
		again, err := op.Infer(flat, lower.FP32)
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
			continue
		}
		want, got := evaluate(t, whole, s.free(tensors), nil), evaluate(t, again, s.free(tensors), nil)
		for i := range want {
			if !got[i].Equal(want[i]) || again.Outputs[i].Name != whole.Outputs[i].Name {
				t.Errorf("%s: output %d is %v, wanted %v", s.name, i, got[i], want[i])
			}
		}
	}
}
