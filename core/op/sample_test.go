package op_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
)

// A sample is one application of an operator, with what it means in float64.
// Each file of a family adds its own; every general test then runs on all.
type sample struct {
	name  string // operator, then what is particular about it
	op    string
	attrs []graph.Attr
	in    []arg
	outs  int // number of outputs, if not 1
	want  func(in []array) []array
}

var samples []sample

func add(s ...sample) bool {
	samples = append(samples, s...)
	return true
}

// flat are the operators of which every gradient is zero, or the result not a
// float.
var flat = map[string]bool{}

func withoutGradient(names ...string) bool {
	for _, name := range names {
		flat[name] = true
	}
	return true
}

// array is a tensor of the reference.
type array struct {
	shape []int
	v     []float64
}

// arg is an input of a sample.
type arg struct {
	t     tensor.DType // 0: not given
	shape []int
	fixed bool // known beforehand
	draw  func(r *rand.Rand, i int) float64
}

// f is a float32 input between −2 and 2, not too close to 0.
func f(shape ...int) arg {
	return arg{t: tensor.Float32, shape: shape, draw: func(r *rand.Rand, _ int) float64 {
		return float64(float32((1-2*r.IntN(2))*(100+r.IntN(1900))) / 1000)
	}}
}

// positive is a float32 input between ½ and 2½.
func positive(shape ...int) arg {
	return arg{t: tensor.Float32, shape: shape, draw: func(r *rand.Rand, _ int) float64 {
		return float64(float32(500+r.IntN(2000)) / 1000)
	}}
}

// ints is an integer input from lo to hi.
func ints(t tensor.DType, lo, hi int, shape ...int) arg {
	return arg{t: t, shape: shape, draw: func(r *rand.Rand, _ int) float64 { return float64(lo + r.IntN(hi-lo+1)) }}
}

func bools(shape ...int) arg { return ints(tensor.Bool, 0, 1, shape...) }

// list is a constant list of integers.
func list(v ...int) arg {
	return arg{t: tensor.Int64, shape: []int{len(v)}, fixed: true, draw: func(_ *rand.Rand, i int) float64 { return float64(v[i]) }}
}

// given is an input of the given elements.
func given(t tensor.DType, shape []int, v ...float64) arg {
	return arg{t: t, shape: shape, draw: func(_ *rand.Rand, i int) float64 { return v[i] }}
}

// as is the input in another type.
func as(t tensor.DType, a arg) arg {
	a.t = t
	return a
}

func fixed(a arg) arg {
	a.fixed = true
	return a
}

var none = arg{}

func elements(shape []int) int { return tensor.Shape(shape).Elements() }

// filled makes an array from f of the coordinates.
func filled(shape []int, f func(at []int) float64) array {
	out := array{shape, make([]float64, elements(shape))}
	at := make([]int, len(shape))
	for i := range out.v {
		tensor.Shape(shape).Coords(i, at)
		out.v[i] = f(at)
	}
	return out
}

// at reads an element; axes of extent 1 repeat, and missing ones in front too.
func (a array) at(at []int) float64 {
	i := 0
	for d, n := range a.shape {
		c := at[len(at)-len(a.shape)+d]
		if n == 1 {
			c = 0
		}
		i = i*n + c
	}
	return a.v[i]
}

// broadcast returns the shape that arrays broadcast to.
func broadcast(in ...array) []int {
	rank := 0
	for _, a := range in {
		rank = max(rank, len(a.shape))
	}
	out := make([]int, rank)
	for d := range out {
		out[d] = 1
		for _, a := range in {
			if i := d - rank + len(a.shape); i >= 0 && a.shape[i] != 1 {
				out[d] = a.shape[i]
			}
		}
	}
	return out
}

// draw returns the inputs of a sample, always the same.
func (s sample) draw() (arrays []array, tensors []*tensor.Tensor) {
	h := fnv.New64a()
	h.Write([]byte(s.name))
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	for _, a := range s.in {
		if a.t == 0 {
			arrays, tensors = append(arrays, array{}), append(tensors, nil)
			continue
		}
		x := array{a.shape, make([]float64, elements(a.shape))}
		for i := range x.v {
			x.v[i] = a.draw(r, i)
		}
		drawn := x.tensor(a.t)
		arrays, tensors = append(arrays, read(drawn)), append(tensors, drawn)
	}
	return arrays, tensors
}

func (a array) tensor(t tensor.DType) *tensor.Tensor {
	x := tensor.Must(tensor.New(t, a.shape))
	for i, v := range a.v {
		switch {
		case t.Float():
			x.Set(i, tensor.FloatWord(t, v))
		case v >= math.MaxInt64: // as a float, it is one too many
			x.Set(i, math.MaxInt64)
		default:
			x.Set(i, tensor.Word(int64(v)))
		}
	}
	return x
}

func read(x *tensor.Tensor) array {
	a := array{x.Shape, make([]float64, x.Len())}
	for i := range a.v {
		switch {
		case x.Type.Float():
			a.v[i] = tensor.FloatOf(x.Type, x.At(i))
		case x.Type == tensor.Uint64:
			a.v[i] = float64(x.At(i))
		default:
			a.v[i] = float64(int64(x.At(i)))
		}
	}
	return a
}

// build applies the operator in a graph whose inputs are those of the sample
// that are not fixed.
func (s sample) build(tensors []*tensor.Tensor) (b *graph.Builder, inputs, outputs []string) {
	b = graph.NewBuilder(s.name)
	inputs = make([]string, len(s.in))
	for i, a := range s.in {
		switch {
		case a.t == 0:
		case a.fixed:
			inputs[i] = b.Init(fmt.Sprintf("x%d", i), tensors[i])
		default:
			inputs[i] = b.Input(fmt.Sprintf("x%d", i), a.t, a.shape)
		}
	}
	return b, inputs, b.With(s.attrs...).As("y").Ops(s.op, max(1, s.outs), inputs...)
}

// free returns the tensors that are inputs of the graph.
func (s sample) free(tensors []*tensor.Tensor) (out []*tensor.Tensor) {
	for i, a := range s.in {
		if a.t != 0 && !a.fixed {
			out = append(out, tensors[i])
		}
	}
	return out
}

// infer types a graph that has the given outputs.
func infer(t testing.TB, b *graph.Builder, outputs ...string) *lower.Typed {
	t.Helper()
	for _, o := range outputs {
		b.Output(o, 0, nil)
	}
	typed, err := op.Infer(b.Graph(), lower.FP32)
	if err != nil {
		t.Fatal(err)
	}
	return typed
}

// evaluate runs a typed graph by the reference kernel and returns its outputs.
func evaluate(t fataler, typed *lower.Typed, inputs []*tensor.Tensor, observe graph.Observer) []*tensor.Tensor {
	t.Helper()
	return evaluateBy(t, engine.Reference{}, typed, inputs, observe)
}

// evaluateBy runs a typed graph by an executor.
func evaluateBy(t fataler, by engine.Executor, typed *lower.Typed, inputs []*tensor.Tensor, observe graph.Observer) []*tensor.Tensor {
	t.Helper()
	p := function(t, typed)
	s := &graph.State{Slots: p.Slots, Tensors: make([]*tensor.Tensor, len(p.Slots))}
	for i, slot := range p.Slots {
		s.Tensors[i] = tensor.Must(tensor.New(slot.Type, slot.Shape))
		for j, in := range typed.Inputs {
			if slot.Name == in.Name {
				s.Tensors[i] = inputs[j]
			}
		}
	}
	end, err := engine.Run(context.Background(), by, p, graph.Inputs{States: []*graph.State{s}}, observe)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]*tensor.Tensor, len(typed.Outputs))
	for i, o := range typed.Outputs {
		out[i] = end.Find(o.Name)
	}
	return out
}

// near reports whether x is y up to float32 rounding.
func near(x, y, tolerance float64) bool {
	if math.IsNaN(x) || math.IsNaN(y) || math.IsInf(x, 0) || math.IsInf(y, 0) {
		return x == y || math.IsNaN(x) && math.IsNaN(y)
	}
	return math.Abs(x-y) <= tolerance*(1+math.Abs(y))
}

// tolerance is what rounding a result to a type may do to it.
func tolerance(t tensor.DType) float64 {
	switch t {
	case tensor.Float16:
		return 1e-3
	case tensor.BFloat16:
		return 8e-3
	}
	return 4e-6
}

// fataler is what tests and property checks have in common.
type fataler interface {
	Helper()
	Fatal(...any)
}
