package kerneltest

import (
	"context"
	"fmt"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/internal/testkit/conform"
)

// Eager returns executors with one set of kernels that share even the smallest work among threads.
func Eager(set *asm.KernelSet) conform.Make {
	return func(threads int) engine.Executor {
		return cpu.NewWith(cpu.Options{Threads: threads, Kernels: set, GrainNs: 1})
	}
}

// Single is a program that computes p from constants.
func Single(p *tensor.Primitive, args ...*tensor.Tensor) (*graph.Program, graph.Inputs) {
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

// RunOn computes p with a set of kernels, from constants and from what is not known
// beforehand, which must give the same.
func RunOn(tb testing.TB, set *asm.KernelSet, threads int, p *tensor.Primitive, args ...*tensor.Tensor) *tensor.Tensor {
	tb.Helper()
	e := cpu.NewWith(cpu.Options{Threads: threads, Kernels: set})
	var outs []*tensor.Tensor
	for _, open := range []bool{false, true} {
		prog, in := Single(p, args...)
		if open {
			Open(prog, in)
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

// Open turns the constants of a program into slots of its state.
func Open(p *graph.Program, in graph.Inputs) {
	s := in.States[0]
	for i, c := range p.Consts {
		ref := graph.Ref{Kind: graph.RefSlot, Index: len(p.Slots)}
		p.Slots = append(p.Slots, graph.Slot{Name: fmt.Sprint("z", i), Type: c.Type, Shape: c.Shape})
		s.Tensors, p.Outputs = append(s.Tensors, c), append(p.Outputs, ref)
		p.Nodes[0].From[i] = ref
	}
	p.Consts, s.Slots = nil, p.Slots
}

// Compare holds every set of kernels, on one thread and on more, to the
// definition.
func Compare(t *testing.T, name string, p *tensor.Primitive, args ...*tensor.Tensor) *tensor.Tensor {
	t.Helper()
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	want, err := p.Eval(args)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range asm.Sets() {
		for threads := 1; threads <= 3; threads++ {
			got := RunOn(t, set, threads, p, args...)
			for i := range want.Len() {
				if got.At(i) != want.At(i) {
					t.Fatalf("%s, %s, %d threads: element %d is %#x, want %#x", name, set.Name, threads, i, got.At(i), want.At(i))
				}
			}
		}
	}
	return want
}

// Bench runs p with Normal operands, which are constants, on one and two threads and reports
// its rate: work, a number of things, in units of 10⁹ a second.
func Bench(b *testing.B, p *tensor.Primitive, work float64, unit string) {
	b.Helper()
	bench(b, p, false, work, unit)
}

// BenchOpen is Bench with operands that may be others in the next run.
func BenchOpen(b *testing.B, p *tensor.Primitive, work float64, unit string) {
	b.Helper()
	bench(b, p, true, work, unit)
}

func bench(b *testing.B, p *tensor.Primitive, open bool, work float64, unit string) {
	b.Helper()
	var args []*tensor.Tensor
	for _, a := range p.Args {
		args = append(args, Normal(a.Type, a.Shape))
	}
	prog, in := Single(p, args...)
	// As inside a longer program, the output is read, and not kept.
	first := &tensor.Primitive{Fn: tensor.Copy, Type: p.Type, Imm: []tensor.Word{0}, Args: []tensor.Access{
		{Type: p.Type, Shape: p.Shape, Dims: make([]tensor.Dim, len(p.Shape))},
	}}
	prog.Nodes = append(prog.Nodes, graph.Opcode{Primitive: first, From: []graph.Ref{{Kind: graph.RefNode}}})
	prog.Outputs[0].Index, prog.Slots[0].Shape = 1, nil
	in.States[0].Tensors[0] = tensor.Must(tensor.New(p.Type, nil))
	if open {
		Open(prog, in)
	}
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("t%d", threads), func(b *testing.B) {
			run, err := cpu.New(threads).Prepare(prog)
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
