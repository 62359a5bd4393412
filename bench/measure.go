package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu"
)

// A measurement repeats until it has taken this long, and at least so often.
const (
	enough  = 700 * time.Millisecond
	repeats = 7
)

// median returns the median time of do, in seconds, after two times that do not
// count: the first finds cold caches and memory that was never used.
func median(ctx context.Context, do func() error) (float64, error) {
	var all []float64
	begun := time.Now()
	for i := 0; i < 2+repeats || time.Since(begun) < enough; i++ {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		at := time.Now()
		if err := do(); err != nil {
			return 0, err
		}
		if took := time.Since(at).Seconds(); i >= 2 {
			all = append(all, took)
		}
	}
	return middle(all), nil
}

// middle returns the median of what was measured, which it sorts.
func middle(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

// runner returns what runs p once, from the given inputs.
func runner(ctx context.Context, p *graph.Program, in graph.Inputs, threads int) (func() error, error) {
	run, err := cpu.New(threads).Prepare(p)
	if err != nil {
		return nil, err
	}
	return func() error {
		_, err := run.Run(ctx, in, nil)
		return err
	}, nil
}

// trainer returns what runs p once, from the state that the last run ended with if its slots
// are those that p reads. Either way it takes memory that nobody reads any more.
func trainer(ctx context.Context, p *graph.Program, in graph.Inputs, threads int) (func() error, error) {
	run, err := cpu.New(threads).Prepare(p)
	if err != nil {
		return nil, err
	}
	return func() error {
		next, err := run.Run(ctx, in, nil)
		if err != nil {
			return err
		}
		if in.Spare = next; p.Results == nil {
			in.Spare, in.States[0] = in.States[0], next
		}
		return nil
	}, nil
}

// alone is a program that computes one primitive and keeps nothing, as if it stood inside a
// longer one. Its arguments are constants, as the weights of inference are and so packed
// once, or may change from run to run.
func alone(p *tensor.Primitive, change bool, args []*tensor.Tensor) (*graph.Program, graph.Inputs) {
	prog, s := &graph.Program{Groups: 1}, &graph.State{}
	keep := func(name string, t *tensor.Tensor, from graph.Ref) {
		prog.Slots = append(prog.Slots, graph.Slot{Name: name, Type: t.Type, Shape: t.Shape})
		s.Tensors, prog.Outputs = append(s.Tensors, t), append(prog.Outputs, from)
	}
	n := graph.Opcode{Primitive: p}
	for i, t := range args {
		ref := graph.Ref{Kind: graph.RefConst, Index: i}
		if change {
			ref.Kind = graph.RefSlot
			keep(fmt.Sprintf("argument%d", i), t, ref)
		} else {
			prog.Consts = append(prog.Consts, t)
		}
		n.From = append(n.From, ref)
	}
	// A scalar of the result is kept, for what nobody reads is not computed.
	corner := &tensor.Primitive{Fn: tensor.Copy, Type: p.Type, Imm: []tensor.Word{0}, Args: []tensor.Access{{Type: p.Type, Shape: p.Shape, Dims: make([]tensor.Dim, len(p.Shape))}}}
	prog.Nodes = []graph.Opcode{n, {Primitive: corner, From: []graph.Ref{{Kind: graph.RefNode}}}}
	keep("corner", tensor.Must(tensor.New(p.Type, nil)), graph.Ref{Kind: graph.RefNode, Index: 1})
	s.Slots = prog.Slots
	return prog, graph.Inputs{States: []*graph.State{s}}
}

// part is a group of rows, which --only names by a part of its name.
type part struct {
	name string
	rows func(context.Context, Options) ([]Row, error)
}

// rowsOf returns the rows of the parts that are asked for.
func rowsOf(ctx context.Context, parts []part, o Options) (rows []Row, err error) {
	var names []string
	for _, p := range parts {
		if names = append(names, p.name); !strings.Contains(p.name, o.Only) {
			continue
		}
		more, err := p.rows(ctx, o)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	if rows == nil {
		return nil, fmt.Errorf("--only %q: give one of %s", o.Only, strings.Join(names, ", "))
	}
	return rows, nil
}
