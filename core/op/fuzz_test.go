package op_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/internal/testkit/memory"
)

// source turns the bytes of a fuzzer into choices; at their end it gives zeros.
type source struct{ b []byte }

func (s *source) n(below int) int {
	if len(s.b) == 0 || below < 1 {
		return 0
	}
	v := int(s.b[0])
	s.b = s.b[1:]
	return v % below
}

// extents that tests and attackers like.
var extents = []int{1, 2, 3, 0, 4, 8, 33, -1, -2, 1 << 20, 1 << 31, 1 << 40, 1 << 62, -1 << 63}

func (s *source) number() int {
	if s.n(4) == 0 {
		return extents[s.n(len(extents))]
	}
	return s.n(6) - 2
}

func (s *source) shape() tensor.Shape {
	out := make(tensor.Shape, s.n(5))
	for i := range out {
		if out[i] = 1 + s.n(4); s.n(8) == 0 {
			out[i] = extents[s.n(len(extents))]
		}
	}
	return out
}

func (s *source) dtype() tensor.DType {
	if s.n(2) == 0 {
		return tensor.Float32
	}
	return append([]tensor.DType{0, 77}, tensor.DTypes...)[s.n(2+len(tensor.DTypes))]
}

// words that attributes take, and one that none does.
var words = []string{"none", "add", "mean", "sum", "mul", "max", "min", "constant", "reflect", "tanh", "LEFT", "RIGHT", "linear", "cubic", "SAME_UPPER", "VALID", "edge", "wrap", "circular", "bidirectional", "reverse", "gated", "delta", "silu", "Relu", "Affine", "ij,jk->ik", "nonsense"}

// attr draws an attribute of an operator, or now and then one that it may not
// have.
func (s *source) attr(name string) graph.Attr {
	known := op.Attrs(name)
	if len(known) == 0 || s.n(20) == 19 {
		return graph.Int("nonsense", s.number())
	}
	a := known[s.n(len(known))]
	switch a.Kind {
	case graph.AttrInts:
		list := make([]int, s.n(5))
		for i := range list {
			list[i] = s.number()
		}
		return graph.Ints(a.Name, list...)
	case graph.AttrFloats:
		return graph.Floats(a.Name, make([]float32, s.n(3))...)
	case graph.AttrStrings:
		return graph.Strings(a.Name, words[s.n(len(words))], words[s.n(len(words))])
	case graph.AttrString:
		return graph.String(a.Name, words[s.n(len(words))])
	case graph.AttrFloat:
		return graph.Float(a.Name, float32(s.number())/2)
	case graph.AttrTensor:
		return graph.Tensor(a.Name, tensor.Scalar(int64(s.number())))
	}
	return graph.Int(a.Name, s.number())
}

// graph builds a graph of a few inputs, constants and nodes that may or may not
// fit together.
func (s *source) graph() *graph.Graph {
	g := &graph.Graph{Name: "fuzz"}
	values := []string{""}
	for i := range 1 + s.n(3) {
		g.Inputs = append(g.Inputs, graph.Value{Name: fmt.Sprintf("in%d", i), Type: s.dtype(), Shape: s.shape()})
		values = append(values, g.Inputs[i].Name)
	}
	for i := range s.n(4) {
		list := make([]int64, s.n(4))
		for j := range list {
			list[j] = int64(s.number())
		}
		c := graph.Const{Name: fmt.Sprintf("const%d", i), Tensor: tensor.Must(tensor.From(tensor.Shape{len(list)}, list))}
		g.Consts, values = append(g.Consts, c), append(values, c.Name)
	}
	names := append(op.Names(), "Convolve")
	for i := range 1 + s.n(6) {
		n := graph.Node{Name: fmt.Sprint(i), Op: names[s.n(len(names))]}
		for range s.n(4) {
			n.Inputs = append(n.Inputs, values[s.n(len(values))])
		}
		for j := range 1 + s.n(2) {
			n.Outputs = append(n.Outputs, fmt.Sprintf("v%d.%d", i, j))
		}
		for range s.n(3) {
			n.Attrs = append(n.Attrs, s.attr(n.Op))
		}
		g.Nodes, values = append(g.Nodes, n), append(values, n.Outputs...)
	}
	for range 1 + s.n(2) {
		g.Outputs = append(g.Outputs, graph.Value{Name: values[len(values)-1-s.n(len(values))]})
	}
	return g
}

// mutant builds the graph of a sample with some of its numbers changed.
func (s *source) mutant() *graph.Graph {
	x := samples[(256*s.n(256)+s.n(256))%len(samples)]
	_, tensors := x.draw()
	x.in, x.attrs = slices.Clone(x.in), slices.Clone(x.attrs)
	for i := range x.in {
		shape := slices.Clone(x.in[i].shape)
		switch {
		case s.n(3) != 0 || len(shape) == 0:
			continue
		case x.in[i].fixed && tensors[i].Len() > 0:
			tensors[i].Set(s.n(tensors[i].Len()), tensor.Word(s.number()))
		case !x.in[i].fixed:
			shape[s.n(len(shape))] = s.number()
			x.in[i].shape = shape
		}
	}
	for i := range x.attrs {
		if s.n(3) == 0 {
			x.attrs[i].Int = int64(s.number())
		}
	}
	if s.n(5) == 0 {
		x.attrs = append(x.attrs, s.attr(x.op))
	}
	b, _, outputs := x.build(tensors)
	for _, o := range outputs {
		b.Output(o, 0, nil)
	}
	return b.Graph()
}

// held puts a graph into one that holds it: a branch, a round of a loop, or of a
// scan of its first input.
func (s *source) held(in *graph.Graph) *graph.Graph {
	body := *in
	g := &graph.Graph{Name: "holds", Inputs: slices.Clone(in.Inputs)}
	n := graph.Node{Name: "holds"}
	around := make([]string, len(in.Inputs))
	for i, v := range in.Inputs {
		around[i] = v.Name
	}
	attr := func(name string, own int) graph.Attr {
		return graph.Attr{Name: name, Kind: graph.AttrGraph, Graph: &body, Int: int64(len(body.Inputs) - own)}
	}
	constant := func(name string, t *tensor.Tensor) string {
		g.Consts = append(g.Consts, graph.Const{Name: name, Tensor: t})
		return name
	}
	switch s.n(4) {
	case 0:
		g.Inputs = append(g.Inputs, graph.Value{Name: "cond", Type: tensor.Bool, Shape: tensor.Shape{1}})
		n.Op, n.Inputs, n.Attrs = "If", append([]string{"cond"}, around...), []graph.Attr{attr("else_branch", 0), attr("then_branch", 0)}
	case 1:
		yes := constant("cond", tensor.Must(tensor.Bools(tensor.Shape{}, s.n(2) == 0)))
		n.Op, n.Inputs, n.Attrs = "If", append([]string{yes}, around...), []graph.Attr{attr("else_branch", 0), attr("then_branch", 0)}
	case 2:
		rounds := constant("rounds", tensor.Scalar(int64(s.number())))
		body.Inputs = append([]graph.Value{{Name: "round"}, {Name: "going"}}, in.Inputs...)
		body.Outputs = append([]graph.Value{{Name: "going"}}, in.Outputs...)
		n.Op, n.Inputs, n.Attrs = "Loop", append([]string{rounds, ""}, around...), []graph.Attr{attr("body", 2)}
	case 3:
		if len(in.Inputs) == 0 {
			return in
		}
		g.Inputs[0].Shape = slices.Insert(in.Inputs[0].Shape.Clone(), 0, s.number())
		n.Op, n.Inputs, n.Attrs = "Scan", around, []graph.Attr{attr("body", 1), graph.Int("num_scan_inputs", 1)}
	}
	for i := range in.Outputs {
		n.Outputs = append(n.Outputs, fmt.Sprintf("held%d", i))
		g.Outputs = append(g.Outputs, graph.Value{Name: n.Outputs[i]})
	}
	g.Nodes = []graph.Node{n}
	return g
}

// Whatever graph comes: it is refused, or it lowers, within bounds, to a program
// that checks and runs, and its gradients do as well.
func FuzzInfer(f *testing.F) {
	for i := range 200 {
		seed := make([]byte, 60)
		for j := range seed {
			seed[j] = byte((i + 3) * (j + 1) * (j + 7) >> 2)
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := &source{b}
		profile := []lower.Profile{lower.FP32, lower.FP32, lower.Mixed, lower.Int8}[s.n(4)]
		var g *graph.Graph
		switch s.n(5) {
		case 0, 1:
			g = s.mutant()
		case 2:
			g = s.graph()
		case 3:
			g = s.held(s.mutant())
		case 4:
			g = s.held(s.held(s.mutant()))
		}
		var typed *lower.Typed
		var err error
		if all := memory.Allocated(func() { typed, err = op.Infer(g, profile) }); all > 16*memory.Slack {
			t.Fatalf("lowering allocates %d bytes in all (%v)", all, err)
		}
		if err != nil {
			return
		}
		run(t, typed)
		for _, o := range typed.Outputs {
			if o.Type == tensor.Float32 {
				differentiate(t, typed, o.Name)
			}
		}
	})
}

// small fails unless the error says that something is too large.
func small(t *testing.T, err error) {
	for _, limit := range []string{"more than", "too large", "limit", "2^40"} {
		if strings.Contains(err.Error(), limit) {
			return
		}
	}
	t.Fatal(err)
}

// differentiate runs the gradients of an output's sum with respect to every
// float input.
func differentiate(t *testing.T, typed *lower.Typed, output string) {
	total := graph.Extend(typed.Graph)
	sum := total.With(graph.Int("keepdims", 0)).Op("ReduceSum", output)
	total.Graph().Outputs = nil
	total.Output(sum, 0, nil)
	typed, err := op.Infer(total.Graph(), lower.FP32)
	if err != nil {
		small(t, err)
		return
	}
	g, calls := typed.Differentiable()
	var with []string
	for _, in := range g.Inputs {
		if in.Type == tensor.Float32 {
			with = append(with, in.Name)
		}
	}
	b := graph.Extend(g)
	grads, err := train.Gradients(b, calls, g.Outputs[0].Name, with, 1)
	if err != nil {
		return
	}
	b.Graph().Outputs = nil
	var shapes []tensor.Shape
	for _, in := range g.Inputs {
		if grads[in.Name] != "" && in.Type == tensor.Float32 {
			b.Output(grads[in.Name], 0, nil)
			shapes = append(shapes, in.Shape)
		}
	}
	if typed, err = op.Infer(b.Graph(), lower.FP32); err != nil {
		small(t, err)
		return
	}
	for i, o := range typed.Outputs {
		if !o.Shape.Equal(shapes[i]) {
			t.Fatalf("gradient of shape %v for an input of shape %v", o.Shape, shapes[i])
		}
	}
	if len(shapes) > 0 {
		run(t, typed)
	}
}

// run executes a program if it is small.
func run(t *testing.T, typed *lower.Typed) {
	p, err := typed.Function()
	if err != nil {
		t.Fatal(err)
	}
	work := 0
	for _, n := range p.Nodes {
		work += n.Shape.Elements() * max(1, n.Terms())
	}
	for _, s := range p.Slots {
		work += s.Shape.Elements()
	}
	if work < 0 || work > 1<<14 {
		return
	}
	var in []*tensor.Tensor
	for _, v := range typed.Inputs {
		in = append(in, tensor.Must(tensor.New(v.Type, v.Shape)))
	}
	evaluate(t, typed, in, nil)
}
