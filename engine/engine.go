package engine

import (
	"context"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Executor turns programs into something that can run them.
type Executor interface {
	// Name says what runs and how, for people and benchmarks.
	Name() string

	// Prepare checks p and plans its execution once, for many runs. The
	// program must not change afterwards.
	Prepare(p *graph.Program) (Runner, error)
}

// Runner runs one program. It is safe for concurrent use.
type Runner interface {
	// Run computes the state after in. It stops soon after ctx is done, the reference
	// between two nodes, and as soon as observe returns an error. A tensor that observe
	// is given may be overwritten when observe has returned. observe may be nil.
	Run(ctx context.Context, in graph.Inputs, observe graph.Observer) (*graph.State, error)
}

// Run prepares p and runs it once.
func Run(ctx context.Context, e Executor, p *graph.Program, in graph.Inputs, observe graph.Observer) (*graph.State, error) {
	r, err := e.Prepare(p)
	if err != nil {
		return nil, err
	}
	return r.Run(ctx, in, observe)
}

// Reference executes programs by their definition, one element at a time.
type Reference struct{}

// Name implements Executor.
func (Reference) Name() string { return "reference" }

// Prepare implements Executor.
func (Reference) Prepare(p *graph.Program) (Runner, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	return reference{p}, nil
}

type reference struct{ program *graph.Program }

func (r reference) Run(ctx context.Context, in graph.Inputs, observe graph.Observer) (*graph.State, error) {
	return r.program.Run(in, func(i int, n *graph.Opcode, args []*tensor.Tensor) (*tensor.Tensor, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return graph.Reference(i, n, args)
	}, observe)
}

// Resizer is a runner whose plan serves a range of extents: batches, lengths of sequences.
type Resizer interface {
	Runner
	// Resize returns a runner of a program that differs from this one's in extents alone. It
	// gives the bits that Prepare's runner would give, and shares what this one has packed.
	Resize(p *graph.Program) (Runner, error)
}
