package conform

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
)

func TestReferenceConforms(t *testing.T) {
	Run(t, reference)
}

// altered is the reference, but for what it does to some outputs.
type altered struct {
	engine.Reference
	change func(n *graph.Opcode, args []*tensor.Tensor, out *tensor.Tensor)
}

func (a altered) Prepare(p *graph.Program) (engine.Runner, error) { return runner{a, p}, p.Check() }

type runner struct {
	altered
	p *graph.Program
}

func (r runner) Run(_ context.Context, in graph.Inputs, observe graph.Observer) (*graph.State, error) {
	return r.p.Run(in, func(_ int, n *graph.Opcode, args []*tensor.Tensor) (*tensor.Tensor, error) {
		out, err := n.Eval(args)
		if err == nil {
			r.change(n, args, out)
		}
		return out, err
	}, observe)
}

// The suite must find each of these, or it proves nothing.
func TestSuiteFindsFaults(t *testing.T) {
	floats := func(x *tensor.Tensor) []float32 { return tensor.Of[float32](x) }
	for _, c := range []struct {
		fault  string
		fn     tensor.Fn
		change func(n *graph.Opcode, args []*tensor.Tensor, out *tensor.Tensor)
	}{
		{"double rounding", tensor.Dot, func(n *graph.Opcode, args []*tensor.Tensor, out *tensor.Tensor) {
			naive(n.Primitive, args, out)
		}},
		{"subnormals flushed", tensor.Mul, func(_ *graph.Opcode, _ []*tensor.Tensor, out *tensor.Tensor) {
			for i, v := range floats(out) {
				if math.Abs(float64(v)) < 0x1p-126 {
					floats(out)[i] = v * 0
				}
			}
		}},
		{"another NaN", tensor.Add, func(_ *graph.Opcode, _ []*tensor.Tensor, out *tensor.Tensor) {
			for i, v := range floats(out) {
				if v != v {
					out.Set(i, 0xffc00000)
				}
			}
		}},
		{"zeros alike", tensor.FoldMin, func(_ *graph.Opcode, _ []*tensor.Tensor, out *tensor.Tensor) {
			for i := range floats(out) {
				floats(out)[i] += 0
			}
		}},
		{"inputs written", tensor.Neg, func(_ *graph.Opcode, args []*tensor.Tensor, _ *tensor.Tensor) {
			clear(args[0].Bytes())
		}},
	} {
		found, cases := 0, 0
		for n := uint64(0); cases < 300; n++ {
			r := rand.New(rand.NewPCG(3, n))
			p, in := Single(r, Primitive(r, c.fn))
			if p.Nodes[0].Type != tensor.Float32 {
				continue
			}
			cases++
			if Compare([]engine.Executor{altered{change: c.change}}, p, in) != nil {
				found++
			}
		}
		t.Logf("%s: %d of %d cases find it", c.fault, found, cases)
		if found < 3 {
			t.Errorf("%s: only %d of %d cases find it", c.fault, found, cases)
		}
	}
}

// naive rounds every multiply-add to float64 first.
func naive(p *tensor.Primitive, args []*tensor.Tensor, out *tensor.Tensor) {
	baseA, a, okA := p.Reader(0)
	baseB, b, okB := p.Reader(1)
	if !okA || !okB || p.Terms() > tensor.KBlock {
		return
	}
	at := make([]int, len(p.Shape)+len(p.Fold))
	for o := range out.Len() {
		p.Shape.Coords(o, at)
		acc := float32(0)
		for k := range p.Terms() {
			tensor.Shape(p.Fold).Coords(k, at[len(p.Shape):])
			i, j := baseA, baseB
			for d, c := range at {
				i, j = i+a[d]*c, j+b[d]*c
			}
			acc = float32(float64(tensor.AsF32(args[0].At(i)))*float64(tensor.AsF32(args[1].At(j))) + float64(acc))
		}
		out.Set(o, tensor.F32(acc))
	}
}

// Whatever bytes a fuzzer finds, the case that they stand for is valid.
func FuzzCase(f *testing.F) {
	f.Add([]byte("a case"))
	f.Fuzz(func(t *testing.T, data []byte) {
		Check(t, reference, data)
	})
}

func reference(int) engine.Executor { return engine.Reference{} }
