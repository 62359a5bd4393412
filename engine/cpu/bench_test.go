package cpu

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
)

func axis(a int) tensor.Dim { return tensor.Dim{Terms: []tensor.Term{{Axis: a, Step: 1}}} }

func axisDims(as ...int) []tensor.Dim {
	var out []tensor.Dim
	for _, a := range as {
		out = append(out, axis(a))
	}
	return out
}

// matmul is the product of an m×k and a k×n matrix.
func matmul(m, k, n int) *tensor.Primitive {
	return &tensor.Primitive{Fn: tensor.Dot, Type: tensor.Float32, Shape: tensor.Shape{m, n}, Fold: []int{k}, Args: []tensor.Access{
		{Type: tensor.Float32, Shape: tensor.Shape{m, k}, Dims: axisDims(0, 2)},
		{Type: tensor.Float32, Shape: tensor.Shape{k, n}, Dims: axisDims(2, 1)},
	}}
}

// single is a program that computes p from constants.
func single(p *tensor.Primitive, args ...*tensor.Tensor) (*graph.Program, graph.Inputs) {
	n := graph.Opcode{Primitive: p}
	for i := range args {
		n.From = append(n.From, graph.Ref{Kind: graph.RefConst, Index: i})
	}
	prog := &graph.Program{
		Groups: 1, Consts: args, Nodes: []graph.Opcode{n},
		Slots:   []graph.Slot{{Name: "z", Type: p.Type, Shape: p.Shape}},
		Outputs: []graph.Ref{{Kind: graph.RefNode}},
	}
	zero := tensor.Must(tensor.New(p.Type, p.Shape))
	return prog, graph.Inputs{States: []*graph.State{{Slots: prog.Slots, Tensors: []*tensor.Tensor{zero}}}}
}

// runOn computes p with a set of kernels, from constants and from what is not known
// beforehand, which must give the same.
func runOn(tb testing.TB, set *asm.Set, threads int, p *tensor.Primitive, args ...*tensor.Tensor) *tensor.Tensor {
	tb.Helper()
	e := New(threads)
	e.set = set
	var outs []*tensor.Tensor
	for _, open := range []bool{false, true} {
		prog, in := single(p, args...)
		if open {
			opened(prog, in)
		}
		run, err := e.Prepare(prog)
		if err != nil {
			tb.Fatal(err)
		}
		out, err := run.Run(context.Background(), in, nil)
		if err != nil {
			tb.Fatal(err)
		}
		outs = append(outs, out.Tensors[0])
	}
	if !outs[0].Equal(outs[1]) {
		tb.Fatalf("%s, %d threads: constants give another result", set.Name, threads)
	}
	return outs[0]
}

// opened turns the constants of a program into slots of its state.
func opened(p *graph.Program, in graph.Inputs) {
	s := in.States[0]
	for i, c := range p.Consts {
		ref := graph.Ref{Kind: graph.RefSlot, Index: len(p.Slots)}
		p.Slots = append(p.Slots, graph.Slot{Name: fmt.Sprint("z", i), Type: c.Type, Shape: c.Shape})
		s.Tensors, p.Outputs = append(s.Tensors, c), append(p.Outputs, ref)
		p.Nodes[0].From[i] = ref
	}
	p.Consts, s.Slots = nil, p.Slots
}

// normal returns normal numbers, or bytes of either sign.
func normal(t tensor.DType, s tensor.Shape) *tensor.Tensor {
	r := rand.New(rand.NewPCG(1, 2))
	x := tensor.Must(tensor.New(t, s))
	for i := range x.Len() {
		if t.Float() {
			x.Set(i, tensor.FloatWord(t, r.NormFloat64()))
		} else {
			x.Set(i, tensor.Word(int64(r.IntN(100)-50)))
		}
	}
	return x
}

// bench runs p with normal operands and reports its rate in units of 10⁹.
func bench(b *testing.B, p *tensor.Primitive, work float64, unit string) {
	b.Helper()
	var args []*tensor.Tensor
	for _, a := range p.Args {
		args = append(args, normal(a.Type, a.Shape))
	}
	prog, in := single(p, args...)
	// As inside a longer program, the output is read, and not kept.
	first := &tensor.Primitive{Fn: tensor.Copy, Type: p.Type, Imm: []tensor.Word{0}, Args: []tensor.Access{
		{Type: p.Type, Shape: p.Shape, Dims: make([]tensor.Dim, len(p.Shape))},
	}}
	prog.Nodes = append(prog.Nodes, graph.Opcode{Primitive: first, From: []graph.Ref{{Kind: graph.RefNode}}})
	prog.Outputs[0].Index, prog.Slots[0].Shape = 1, nil
	in.States[0].Tensors[0] = tensor.Must(tensor.New(p.Type, nil))
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("t%d", threads), func(b *testing.B) {
			run, err := New(threads).Prepare(prog)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := run.Run(context.Background(), in, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(work*float64(b.N)/b.Elapsed().Seconds()/1e9, unit)
		})
	}
}

func BenchmarkMap(b *testing.B) {
	s := tensor.Shape{512, 256}
	n := float64(s.Elements())
	full := tensor.Access{Type: tensor.Float32, Shape: s, Dims: axisDims(0, 1)}
	row := tensor.Access{Type: tensor.Float32, Shape: tensor.Shape{256}, Dims: axisDims(1)}
	for name, p := range map[string]*tensor.Primitive{
		"add":       {Fn: tensor.Add, Args: []tensor.Access{full, full}},
		"broadcast": {Fn: tensor.Add, Args: []tensor.Access{full, row}},
		"div":       {Fn: tensor.Div, Args: []tensor.Access{full, full}},
		"max":       {Fn: tensor.Max, Args: []tensor.Access{full, row}},
		"exp":       {Fn: tensor.ExpF, Args: []tensor.Access{full}},
		"tanh":      {Fn: tensor.TanhF, Args: []tensor.Access{full}},
		"erf":       {Fn: tensor.ErfF, Args: []tensor.Access{full}},
		"abs":       {Fn: tensor.Abs, Args: []tensor.Access{full}},
	} {
		p.Type, p.Shape = tensor.Float32, s
		b.Run(name, func(b *testing.B) { bench(b, p, n, "Gelt/s") })
	}
}

func BenchmarkFold(b *testing.B) {
	s := tensor.Shape{512, 256}
	n := float64(s.Elements())
	for _, fn := range []tensor.Fn{tensor.FoldSum, tensor.FoldMax} {
		for name, p := range map[string]*tensor.Primitive{
			"rows":    {Shape: s[:1], Fold: []int{s[1]}, Args: []tensor.Access{{Dims: axisDims(0, 1)}}},
			"columns": {Shape: s[1:], Fold: []int{s[0]}, Args: []tensor.Access{{Dims: axisDims(1, 0)}}},
			"all":     {Fold: []int{s[0], s[1]}, Args: []tensor.Access{{Dims: axisDims(0, 1)}}},
		} {
			p.Fn, p.Type = fn, tensor.Float32
			p.Args[0].Type, p.Args[0].Shape = tensor.Float32, s
			b.Run(fn.String()+"/"+name, func(b *testing.B) { bench(b, p, n, "Gelt/s") })
		}
	}
}

func BenchmarkCopy(b *testing.B) {
	for name, dims := range map[string][]tensor.Dim{"heads": axisDims(0, 2, 1, 3), "transpose": axisDims(0, 1, 3, 2)} {
		s := tensor.Shape{8, 4, 64, 64}
		p := &tensor.Primitive{Fn: tensor.Copy, Type: tensor.Float32, Shape: s, Imm: []tensor.Word{0}}
		a := tensor.Access{Type: tensor.Float32, Dims: dims}
		for _, d := range dims {
			a.Shape = append(a.Shape, s[d.Terms[0].Axis])
		}
		p.Args = []tensor.Access{a}
		b.Run(name, func(b *testing.B) { bench(b, p, float64(s.Elements()), "Gelt/s") })
	}
}
