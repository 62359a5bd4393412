// Package conform holds every executor to the definition of the primitives.
//
// It draws random primitives and programs, of every function and every form of
// access, with operands that provoke the traps of float arithmetic. It compares each node's
// output, bit by bit, with what tensor.Primitive.Eval computes. It also recomputes parts of a
// run alone, down to one fold block, as a referee does.
//
// [Run] is the suite that an executor's tests call. [Check] is one case of it, for
// fuzz targets. The environment variable TALLY_CONFORM_CASES sets how many
// cases Run draws for each function.
//
// Invariant: a case follows from its bytes or its seed alone, so a failure can be played again.
package conform

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
)

// Make returns an executor that uses the given number of threads.
type Make func(threads int) engine.Executor

// each returns the executors for one, two and three threads, those that differ.
func (m Make) each() []engine.Executor {
	out := []engine.Executor{m(1)}
	for threads := 2; threads <= 3; threads++ {
		if e := m(threads); e.Name() != out[0].Name() {
			out = append(out, e)
		}
	}
	return out
}

// Run checks an executor.
func Run(t *testing.T, e Make) {
	cases := 100
	if testing.Short() {
		cases = 8
	}
	if s := os.Getenv("TALLY_CONFORM_CASES"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("TALLY_CONFORM_CASES: %v", err)
		}
		cases = n
	}
	for i, fn := range Functions {
		t.Run(fmt.Sprintf("%v/%v", fn.Kind(), fn), func(t *testing.T) {
			for n := range cases {
				r := rand.New(rand.NewPCG(uint64(i), uint64(n)))
				p, in := Single(r, Primitive(r, fn))
				if err := Compare(e.each(), p, in); err != nil {
					t.Fatalf("case %d: %v", n, err)
				}
			}
		})
	}
	t.Run("program", func(t *testing.T) {
		for n := range 4 * cases {
			r := rand.New(rand.NewPCG(1<<32, uint64(n)))
			p, in := Program(r)
			if err := Compare(e.each(), p, in); err != nil {
				t.Fatalf("case %d: %v", n, err)
			}
		}
	})
	t.Run("fusible", func(t *testing.T) {
		for n := range 8 * cases {
			p, in := Fusible(rand.New(rand.NewPCG(1<<33, uint64(n))))
			if err := Compare(e.each(), p, in); err != nil {
				t.Fatalf("case %d: %v", n, err)
			}
		}
	})
	t.Run("blocks", func(t *testing.T) {
		for n := range 2 * cases {
			p, in := Blocks(rand.New(rand.NewPCG(3<<33, uint64(n))))
			if err := Compare(e.each(), p, in); err != nil {
				t.Fatalf("case %d: %v", n, err)
			}
		}
	})
	t.Run("parts", func(t *testing.T) {
		for n := range 4 * cases {
			r := rand.New(rand.NewPCG(2<<32, uint64(n)))
			p, in := Program(r)
			x, err := Execute(e(2), p, in)
			for k := 0; k < 20 && err == nil; k++ {
				_, _, err = x.Part(r)
			}
			if err != nil {
				t.Fatalf("case %d: %v", n, err)
			}
		}
	})
	t.Run("concurrent", func(t *testing.T) { concurrent(t, e(2)) })
	t.Run("stops", func(t *testing.T) { stops(t, e(2)) })
	t.Run("refuses", func(t *testing.T) { refuses(t, e(1)) })
}

// Check draws one case from data and compares an executor's result.
func Check(t *testing.T, e Make, data []byte) {
	t.Helper()
	r := rand.New(&bytesSource{data: data})
	var p *graph.Program
	var in graph.Inputs
	switch r.IntN(6) {
	case 0:
		p, in = Program(r)
	case 1:
		p, in = Fusible(r)
	case 2:
		p, in = Blocks(r)
	default:
		p, in = Single(r, Primitive(r, pick(r, Functions...)))
	}
	if err := Compare(e.each(), p, in); err != nil {
		t.Fatal(err)
	}
}

// bytesSource turns fuzzed bytes into choices, one byte each, and goes on at
// random from their sum when they are used up.
type bytesSource struct {
	data []byte
	rest rand.PCG
	sum  uint64
}

func (s *bytesSource) Uint64() uint64 {
	if len(s.data) == 0 {
		return s.rest.Uint64()
	}
	b := uint64(s.data[0])
	s.data = s.data[1:]
	s.sum = s.sum*257 + b
	s.rest.Seed(s.sum, 1)
	// IntN takes the high bits of the word, or of its lower half.
	return b<<56 | b<<24 | b
}

// Compare runs p by its definition and, twice, by each executor, observed and
// not: a second run meets what the first left in memory, and an executor may do
// at once what nobody observes.
func Compare(executors []engine.Executor, p *graph.Program, in graph.Inputs) error {
	if err := p.Check(); err != nil {
		return fmt.Errorf("program is not valid: %w", err)
	}
	var want []*tensor.Tensor
	end, err := engine.Run(context.Background(), engine.Reference{}, p, in, func(_ int, out *tensor.Tensor) error {
		want = append(want, out)
		return nil
	})
	if err != nil {
		return fmt.Errorf("reference: %w", err)
	}
	before := clone(in)
	for _, x := range executors {
		run, err := x.Prepare(p)
		if err != nil {
			return fmt.Errorf("%s: %w", x.Name(), err)
		}
		for range 2 {
			if err := compare(run, p, in, want, end); err != nil {
				return fmt.Errorf("%s: %w", x.Name(), err)
			}
			got, err := run.Run(context.Background(), in, nil)
			if err == nil {
				err = sameState(got, p, end)
			}
			if err != nil {
				return fmt.Errorf("%s, unobserved: %w", x.Name(), err)
			}
		}
	}
	for g, s := range in.States {
		for i, x := range s.Tensors {
			if !x.Equal(before.States[g].Tensors[i]) {
				return fmt.Errorf("slot %d of state %d was written to", i, g)
			}
		}
	}
	return nil
}

func compare(run engine.Runner, p *graph.Program, in graph.Inputs, want []*tensor.Tensor, end *graph.State) error {
	seen := 0
	got, err := run.Run(context.Background(), in, func(i int, out *tensor.Tensor) error {
		if i != seen {
			return fmt.Errorf("node %d observed, wanted %d", i, seen)
		}
		seen++
		if err := same(out, want[i]); err != nil {
			return fmt.Errorf("node %d, %s: %w", i, Describe(p.Nodes[i].Primitive), err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if seen != len(p.Nodes) {
		return fmt.Errorf("%d of %d nodes observed", seen, len(p.Nodes))
	}
	return sameState(got, p, end)
}

func sameState(got *graph.State, p *graph.Program, want *graph.State) error {
	if err := got.Fits(p.Gives()); err != nil {
		return err
	}
	for i, x := range got.Tensors {
		if err := same(x, want.Tensors[i]); err != nil {
			return fmt.Errorf("slot %d: %w", i, err)
		}
	}
	return nil
}

func same(got, want *tensor.Tensor) error {
	if got.Type != want.Type || !got.Shape.Equal(want.Shape) {
		return fmt.Errorf("got a tensor %v%v, want %v%v", got.Type, got.Shape, want.Type, want.Shape)
	}
	if got.Equal(want) {
		return nil
	}
	wrong, first := 0, -1
	for i := range want.Len() {
		if got.At(i) != want.At(i) {
			if wrong++; first < 0 {
				first = i
			}
		}
	}
	return fmt.Errorf("%d of %d elements differ; element %d is %#x, want %#x", wrong, want.Len(), first, got.At(first), want.At(first))
}

func clone(in graph.Inputs) graph.Inputs {
	var out graph.Inputs
	for _, s := range in.States {
		c := &graph.State{Slots: s.Slots}
		for _, x := range s.Tensors {
			c.Tensors = append(c.Tensors, x.Clone())
		}
		out.States = append(out.States, c)
	}
	return out
}

// Describe returns a primitive in a form for people who look for a fault.
func Describe(p *tensor.Primitive) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %v%v over %v imm %#x", p.Fn, p.Type, p.Shape, p.Fold, p.Imm)
	for _, a := range p.Args {
		fmt.Fprintf(&b, ", %v%v flat=%v", a.Type, a.Shape, a.Flat)
		for _, d := range a.Dims {
			fmt.Fprintf(&b, " (%d", d.Offset)
			for _, t := range d.Terms {
				fmt.Fprintf(&b, " %+d·x%d", t.Step, t.Axis)
			}
			if d.Via != 0 {
				fmt.Fprintf(&b, " via %d", d.Via)
			}
			b.WriteString(")")
		}
	}
	return b.String()
}

// concurrent runs one runner from several goroutines.
func concurrent(t *testing.T, e engine.Executor) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 20 {
		p, in := Program(r)
		want, err := engine.Run(context.Background(), engine.Reference{}, p, in, nil)
		if err != nil {
			t.Fatal(err)
		}
		run, err := e.Prepare(p)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				got, err := run.Run(context.Background(), in, nil)
				if err != nil {
					t.Error(err)
					return
				}
				for i, x := range got.Tensors {
					if err := same(x, want.Tensors[i]); err != nil {
						t.Errorf("slot %d: %v", i, err)
					}
				}
			})
		}
		wg.Wait()
	}
}

// stops cancels a run, and fails an observer, at every node.
func stops(t *testing.T, e engine.Executor) {
	p, in := Program(rand.New(rand.NewPCG(8, 8)))
	run, err := e.Prepare(p)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	for stop := range p.Nodes {
		ctx, cancel := context.WithCancel(context.Background())
		seen := 0
		_, err := run.Run(ctx, in, func(i int, _ *tensor.Tensor) error {
			if seen++; i == stop {
				cancel()
			}
			return nil
		})
		if last := stop == len(p.Nodes)-1; seen != stop+1 || !last && !errors.Is(err, context.Canceled) || last && err != nil {
			t.Errorf("cancelled after node %d: %d nodes ran, error %v", stop, seen, err)
		}
		cancel()
		_, err = run.Run(context.Background(), in, func(i int, _ *tensor.Tensor) error {
			if i == stop {
				return broken
			}
			return nil
		})
		if !errors.Is(err, broken) {
			t.Errorf("observer failed at node %d: error %v", stop, err)
		}
	}
}

// refuses gives an executor programs and inputs that do not fit.
func refuses(t *testing.T, e engine.Executor) {
	r := rand.New(rand.NewPCG(9, 9))
	p, in := Single(r, Primitive(r, tensor.Add))
	run, err := e.Prepare(p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Run(context.Background(), graph.Inputs{}, nil); err == nil {
		t.Error("a run without a state passed")
	}
	wrong := clone(in)
	wrong.States[0].Slots = append([]graph.Slot(nil), p.Slots...)
	wrong.States[0].Slots[0].Name = "other"
	if _, err := run.Run(context.Background(), wrong, nil); err == nil {
		t.Error("a run from another program's state passed")
	}
	p.Nodes[0].From = p.Nodes[0].From[:1]
	if _, err := e.Prepare(p); err == nil {
		t.Error("a node without one of its operands was prepared")
	}
}
