package demo

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
)

// Cheat is a way in which the demo's dishonest provider computes.
type Cheat string

// The cheats.
const (
	CheatNone Cheat = "none"
	// CheatULP changes one accumulator of one product, of matrices or in a convolution, by one unit
	// in the last place, after its first fold block, in the last step or run of every unit.
	CheatULP Cheat = "ulp"
)

// Executor returns exec as a cheat bends it in orders of one kind. steps is the length of
// their units.
func (c Cheat) Executor(exec engine.Executor, kind string, steps int) (engine.Executor, error) {
	switch c {
	case CheatNone:
		return exec, nil
	case CheatULP:
		return bent{exec, kind, steps}, nil
	}
	return nil, fmt.Errorf("cheat %q is not known; use %s or %s", c, CheatULP, CheatNone)
}

// bent is an executor that cheats in the steps of units of one kind, and in nothing else.
type bent struct {
	engine.Executor
	kind  string
	steps int
}

// counts returns what numbers the steps of a program, by their inputs: nil if it is no
// program of a unit's steps.
func (b bent) counts(p *graph.Program) func(in graph.Inputs) int64 {
	if b.kind == job.Batch {
		if p.Results == nil || p.Rows == 0 {
			return nil
		}
		return func(in graph.Inputs) int64 { return in.Rows[0] / int64(p.Rows) }
	}
	for i, s := range p.Slots {
		// Only a training step reads records and changes parameters.
		if s.Name == "step" && s.Type == tensor.Int64 && len(s.Shape) == 0 && p.Data != nil && p.Outputs[i].Kind == graph.RefNode {
			return func(in graph.Inputs) int64 { return tensor.Of[int64](in.States[0].Tensors[i])[0] }
		}
	}
	return nil
}

func (b bent) Prepare(p *graph.Program) (engine.Runner, error) {
	honest, err := b.Executor.Prepare(p)
	if err != nil {
		return nil, err
	}
	number := b.counts(p)
	var products []int
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Fn == tensor.Dot && n.Type == tensor.Float32 && n.Blocks() > 1 {
			products = append(products, i)
		}
	}
	if number == nil || len(products) == 0 {
		return honest, nil
	}
	slices.Reverse(products)
	return &bentRunner{Runner: honest, program: p, commitment: p.Commit(), number: number, products: products, steps: b.steps, faults: map[int64]fault{}}, nil
}

// bentRunner runs steps and bends the last of each unit.
type bentRunner struct {
	engine.Runner
	program    *graph.Program
	commitment *graph.Commitment
	number     func(in graph.Inputs) int64 // of a step
	products   []int                       // nodes that may be bent, the last first
	steps      int

	mu     sync.Mutex
	faults map[int64]fault // by step
}

// fault is where the accumulator of one element is bent.
type fault struct{ node, element, block int }

// bends reports whether the step from these inputs is bent.
func (r *bentRunner) bends(in graph.Inputs) (step int64, bends bool) {
	step = r.number(in)
	return step, (step+1)%int64(r.steps) == 0
}

// Run implements engine.Runner.
func (r *bentRunner) Run(ctx context.Context, in graph.Inputs, observe graph.Observer) (*graph.State, error) {
	step, bends := r.bends(in)
	if !bends {
		return r.Runner.Run(ctx, in, observe)
	}
	e, err := dispute.Execute(r.program, r.commitment, in, func(in graph.Inputs, observe graph.Observer) (*graph.State, error) {
		return r.Runner.Run(ctx, in, observe)
	})
	if err != nil {
		return nil, err
	}
	out, err := r.bend(e, step)
	if err != nil {
		return nil, err
	}
	for i, v := range e.Values {
		if observe != nil {
			if err := observe(i, v); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// bend looks for an element whose bent accumulator changes the resulting state,
// and changes the execution accordingly.
func (r *bentRunner) bend(e *dispute.Execution, step int64) (*graph.State, error) {
	honest, err := e.Out.Root()
	if err != nil {
		return nil, err
	}
	for _, node := range r.products {
		for element := range r.program.Nodes[node].Shape.Elements() {
			f := fault{node, element, 1}
			words, err := r.account(e, f)
			if err != nil {
				return nil, err
			}
			word := words[len(words)-1][0]
			if word == e.Values[node].At(element) {
				continue
			}
			values, out, err := r.descend(e, f, word)
			if err != nil {
				return nil, err
			}
			if root, err := out.Root(); err != nil || root == honest {
				continue
			}
			e.Values = values
			r.mu.Lock()
			r.faults[step] = f
			r.mu.Unlock()
			return out, nil
		}
	}
	return e.Out, nil // rounding swallows every bend
}

// descend computes what follows from a changed element.
func (r *bentRunner) descend(e *dispute.Execution, f fault, word tensor.Word) ([]*tensor.Tensor, *graph.State, error) {
	p := r.program
	bent := *e
	bent.Values = append([]*tensor.Tensor{}, e.Values...)
	bent.Values[f.node] = e.Values[f.node].Clone()
	bent.Values[f.node].Set(f.element, word)
	changed := map[int]bool{f.node: true}
	for i := f.node + 1; i < len(p.Nodes); i++ {
		n := &p.Nodes[i]
		dirty := false
		args := make([]*tensor.Tensor, len(n.From))
		for j, ref := range n.From {
			dirty = dirty || ref.Kind == graph.RefNode && changed[ref.Index]
			args[j] = bent.Value(ref)
		}
		if !dirty {
			continue
		}
		v, err := n.Eval(args)
		if err != nil {
			return nil, nil, err
		}
		changed[i] = !v.Equal(bent.Values[i])
		bent.Values[i] = v
	}
	out := &graph.State{Slots: p.Gives()}
	for _, ref := range p.Outputs {
		out.Tensors = append(out.Tensors, bent.Value(ref))
	}
	return bent.Values, out, nil
}

// account returns the accumulators of the bent element before every fold block,
// and its value.
func (r *bentRunner) account(e *dispute.Execution, f fault) ([][]tensor.Word, error) {
	n := &r.program.Nodes[f.node]
	c := tensor.NewCell(n.Primitive, func(arg, i int) (tensor.Word, error) { return e.Value(n.From[arg]).At(i), nil })
	if err := c.Seek(f.element); err != nil {
		return nil, err
	}
	s, err := c.Start()
	if err != nil {
		return nil, err
	}
	var out [][]tensor.Word
	for b := range n.Blocks() {
		out = append(out, append([]tensor.Word{}, s...))
		lo, hi := n.Block(b)
		if s, err = c.Run(s, lo, hi); err != nil {
			return nil, err
		}
		if b == f.block {
			s[0] = nextUp(s[0])
		}
	}
	w, err := c.Finish(s)
	return append(out, []tensor.Word{w}), err
}

func nextUp(w tensor.Word) tensor.Word {
	return tensor.F32(math.Nextafter32(tensor.AsF32(w), float32(math.Inf(1))))
}

// States implements replay.Accountant: in a dispute the cheater stands by what
// it computed.
func (r *bentRunner) States(in graph.Inputs, node, element int, blocks []int) (states [][]tensor.Word, own bool, err error) {
	step, bends := r.bends(in)
	r.mu.Lock()
	f, known := r.faults[step]
	r.mu.Unlock()
	if !bends || !known || node != f.node || element != f.element {
		return nil, false, nil
	}
	e, err := dispute.Execute(r.program, r.commitment, in, func(in graph.Inputs, observe graph.Observer) (*graph.State, error) {
		return r.Runner.Run(context.Background(), in, observe)
	})
	if err != nil {
		return nil, false, err
	}
	all, err := r.account(e, f)
	if err != nil {
		return nil, false, err
	}
	for _, b := range blocks {
		states = append(states, all[b])
	}
	return states, true, nil
}
