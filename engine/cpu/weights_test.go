package cpu_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/engine/cpu/weights"
	"github.com/tally-network/tally/internal/testkit/kerneltest"
	"github.com/tally-network/tally/internal/testkit/memory"
)

// layers is a program that multiplies its state, rows by n, with constants of n by n.
func layers(count, rows, n int) (*graph.Program, graph.Inputs) {
	p := kerneltest.MatMul(rows, n, n)
	out := &graph.Program{Groups: 1, Slots: []graph.Slot{{Name: "x", Type: p.Type, Shape: p.Shape}}}
	from := graph.Ref{Kind: graph.RefSlot}
	for i := range count {
		w := tensor.Must(tensor.New(tensor.Float32, p.Args[1].Shape))
		for j, all := 0, tensor.Of[float32](w); j < len(all); j++ {
			all[j] = float32((j*7+i)%101-50) / float32(10*n)
		}
		out.Consts = append(out.Consts, w)
		out.Nodes = append(out.Nodes, graph.Opcode{Primitive: p, From: []graph.Ref{from, {Kind: graph.RefConst, Index: i}}})
		from = graph.Ref{Kind: graph.RefNode, Index: i}
	}
	out.Outputs = []graph.Ref{from}
	x := kerneltest.Normal(p.Type, p.Args[0].Shape)
	x.Shape = p.Shape
	return out, graph.Inputs{States: []*graph.State{{Slots: out.Slots, Tensors: []*tensor.Tensor{x}}}}
}

func newStore(t testing.TB, o weights.Options) *weights.Store {
	t.Helper()
	s, err := weights.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func prepared(t testing.TB, o cpu.Options, p *graph.Program) engine.Explainer {
	t.Helper()
	r, err := cpu.NewWith(o).Prepare(p)
	if err != nil {
		t.Fatal(err)
	}
	return r.(engine.Explainer)
}

// packedOnce counts the tasks that read a weight that was packed once.
func packedOnce(t *testing.T, r engine.Explainer, in graph.Inputs) (n int) {
	t.Helper()
	_, tasks, err := r.Explain(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range tasks {
		if strings.Contains(x.Packing, "packed once") {
			n++
		}
	}
	return n
}

// A packed weight takes the place of its constant, if nobody else holds that: there are
// never both of all of them.
func TestPackedWeightsReplaceTheirConstants(t *testing.T) {
	const count, n = 24, 768
	const packed = count * n * n * 4
	var last any
	peak := memory.Peak(func() {
		p, in := layers(count, 48, n)
		s := newStore(t, weights.Options{Bytes: 1 << 30})
		r := prepared(t, cpu.Options{Threads: 1, Weights: s}, p)
		p.Consts = nil
		if got := packedOnce(t, r, in); got != count {
			t.Errorf("%d of %d weights are packed once", got, count)
		}
		if s.Bytes() < packed {
			t.Errorf("%d bytes are packed, of %d", s.Bytes(), packed)
		}
		last = []any{r, s}
	}, func(peak int64) bool { return peak <= packed*11/10 })
	if peak > packed*11/10 {
		t.Errorf("%d bytes at the peak, for %d of packed weights", peak, packed)
	}
	runtime.KeepAlive(last)
}

// Two runners, of programs of their own with the same constants, share what is packed. Where
// there is no room, weights are packed in every run.
func TestRunnersShareWeights(t *testing.T) {
	const count, n = 5, 128
	const each = n*n*4 + 4<<10
	p, in := layers(count, 48, n)
	want, err := engine.Run(t.Context(), engine.Reference{}, p, in, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ room, packed int }{{count, count}, {2, 2}, {0, 0}} {
		s := newStore(t, weights.Options{Bytes: c.room * each})
		q, _ := layers(count, 48, n)
		r1, r2 := prepared(t, cpu.Options{Threads: 2, Weights: s}, p), prepared(t, cpu.Options{Threads: 1, Weights: s}, q)
		if a, b := packedOnce(t, r1, in), packedOnce(t, r2, in); a != c.packed || b != c.packed {
			t.Errorf("room for %d weights: %d and %d are packed once", c.room, a, b)
		}
		if s.Bytes() > c.packed*each {
			t.Errorf("room for %d weights: %d bytes are taken", c.room, s.Bytes())
		}
		for _, r := range []engine.Runner{r1, r2} {
			if got, err := r.Run(t.Context(), in, nil); err != nil || !got.Tensors[0].Equal(want.Tensors[0]) {
				t.Errorf("room for %d weights: another result: %v", c.room, err)
			}
		}
	}
}

// Constants whose packed forms replaced them are made again for who reads them: an observed
// run, and elements that padding may have changed.
func TestReplacedConstantsAreMadeAgain(t *testing.T) {
	conv := kerneltest.Convolution{Batch: 1, In: 16, Size: 14, Out: 40, Kernel: 3, Stride: 1, Pad: 1, Groups: 1}.Primitive()
	for name, p := range map[string]*tensor.Primitive{"convolution": conv, "product": kerneltest.MatMul(40, 64, 80)} {
		for _, special := range []float32{1, float32(math.Inf(1)), 0x1p-140} {
			x, w := kerneltest.Normal(p.Args[0].Type, p.Args[0].Shape), kerneltest.Normal(p.Args[1].Type, p.Args[1].Shape)
			tensor.Of[float32](w)[5] = special
			want, err := p.Eval([]*tensor.Tensor{x, w})
			if err != nil {
				t.Fatal(err)
			}
			prog, in := kerneltest.Single(p, x, w.Clone())
			in.States[0].Tensors = append(in.States[0].Tensors, x)
			prog.Slots = append(prog.Slots, graph.Slot{Name: "zx", Type: x.Type, Shape: x.Shape})
			prog.Outputs = append(prog.Outputs, graph.Ref{Kind: graph.RefSlot, Index: 1})
			prog.Nodes[0].From[0], in.States[0].Slots = prog.Outputs[1], prog.Slots
			r := prepared(t, cpu.Options{Threads: 2, Weights: newStore(t, weights.Options{Bytes: 1 << 20})}, prog)
			prog.Consts = nil
			if packedOnce(t, r, in) != 1 {
				t.Fatalf("%s: the weight is not packed", name)
			}
			runtime.GC()
			for run, observe := range []graph.Observer{nil, func(int, *tensor.Tensor) error { return nil }, nil} {
				if got, err := r.Run(t.Context(), in, observe); err != nil || !got.Tensors[0].Equal(want) {
					t.Errorf("%s with %v, run %d: another result: %v", name, special, run, err)
				}
			}
		}
	}
}

// A plan whose packing is given up goes on with it in the next run.
func TestPackingGoesOn(t *testing.T) {
	p, in := layers(20, 48, 256)
	want, err := prepared(t, cpu.Options{Threads: 1}, p).Run(t.Context(), in, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", t.TempDir()} {
		r := prepared(t, cpu.Options{Threads: 1, Weights: newStore(t, weights.Options{Bytes: 1 << 30, Dir: dir, DirBytes: 1 << 30})}, p)
		for n := range 6 {
			if _, err := r.Run(&endsAfter{t.Context(), n * 4}, in, nil); n < 2 && !errors.Is(err, context.Canceled) {
				t.Errorf("run %d was not given up: %v", n, err)
			}
		}
		if got, err := r.Run(t.Context(), in, nil); err != nil || !got.Tensors[0].Equal(want.Tensors[0]) {
			t.Errorf("another result: %v", err)
		}
	}
	if slices.Contains(p.Consts, nil) {
		t.Error("the caller's program has changed")
	}
}

// endsAfter is a context that has ended once it was asked so often.
type endsAfter struct {
	context.Context
	left int
}

func (c *endsAfter) Done() <-chan struct{} { return nil }

func (c *endsAfter) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// A runner for other rows gives the bits of one that is made for them, and shares the packed
// weights of the first: one weight is packed once for all batches.
func TestResizedRunners(t *testing.T) {
	const count, n = 4, 160
	s := newStore(t, weights.Options{Bytes: 1 << 30})
	p, in := layers(count, 200, n)
	first := prepared(t, cpu.Options{Threads: 2, Weights: s}, p)
	if _, err := first.Run(t.Context(), in, nil); err != nil {
		t.Fatal(err)
	}
	taken := s.Bytes()
	for _, rows := range []int{1, 7, 64, 199, 300} {
		q, in := layers(count, rows, n)
		want, err := prepared(t, cpu.Options{Threads: 1}, q).Run(t.Context(), in, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := first.(engine.Resizer).Resize(q)
		if err != nil {
			t.Fatal(err)
		}
		if got := packedOnce(t, r.(engine.Explainer), in); got != count {
			t.Errorf("%d rows: %d weights are packed once", rows, got)
		}
		for _, observe := range []graph.Observer{nil, func(int, *tensor.Tensor) error { return nil }} {
			if got, err := r.Run(t.Context(), in, observe); err != nil || !got.Tensors[0].Equal(want.Tensors[0]) {
				t.Errorf("%d rows: another result: %v", rows, err)
			}
		}
		if s.Bytes() != taken {
			t.Errorf("%d rows: %d bytes are packed, before it were %d", rows, s.Bytes(), taken)
		}
	}
	other, _ := layers(count+1, 10, n)
	if _, err := first.(engine.Resizer).Resize(other); err == nil {
		t.Error("a program with another node differs in more than extents")
	}
}
