package encoder

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
)

const (
	// maxRows is tokens of a batch, padding among them: more take memory, and hardly less time for each.
	maxRows = 2048
	// maxPlans bounds the extents that stay prepared.
	maxPlans = 32
)

// Embedder computes vectors by an executor. Many may use one; their batches run one after another.
type Embedder struct {
	encoder *Encoder
	exec    engine.Executor
	turn    chan struct{}
	plans   map[extents]*plan
}

// extents are those of a batch.
type extents struct{ batch, length int }

// plan is the graph of a batch that an executor has prepared.
type plan struct {
	program *graph.Program
	runner  engine.Runner
}

// NewEmbedder returns what computes vectors by an executor.
func (e *Encoder) NewEmbedder(x engine.Executor) *Embedder {
	return &Embedder{encoder: e, exec: x, turn: make(chan struct{}, 1), plans: map[extents]*plan{}}
}

// Embed returns the vector of each text, which is given as its tokens, special ones among them. A vector does not depend on the other texts.
func (m *Embedder) Embed(ctx context.Context, texts [][]int32) ([][]float32, error) {
	order := make([]int, len(texts))
	for i, t := range texts {
		order[i] = i
		if len(t) == 0 || len(t) > m.encoder.Positions {
			return nil, fmt.Errorf("text %d has %d tokens: want 1 to %d", i, len(t), m.encoder.Positions)
		}
		for _, id := range t {
			if id < 0 || int(id) >= m.encoder.Vocabulary {
				return nil, fmt.Errorf("text %d has token %d: want 0 to %d", i, id, m.encoder.Vocabulary-1)
			}
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(texts[b]), len(texts[a])) }) // alike ones together
	out := make([][]float32, len(texts))
	for len(order) > 0 {
		length := m.length(len(texts[order[0]]))
		n := 1
		for n < len(order) && (n+1)*length <= maxRows && m.length(len(texts[order[n]])) == length {
			n++
		}
		if err := m.batch(ctx, texts, order[:n], length, out); err != nil {
			return nil, err
		}
		order = order[n:]
	}
	return out, nil
}

// length is how long texts of n tokens are made by padding. There are few lengths, each of which is planned once.
func (m *Embedder) length(n int) int {
	whole := max(8, roundUp(n))
	if most := whole * 3 / 4; n <= most && most > 8 {
		whole = most
	}
	return min(whole, m.encoder.Positions)
}

// roundUp returns the least power of two that is at least n.
func roundUp(n int) int { return 1 << bits.Len(uint(n-1)) }

// batch computes the vectors of some texts.
func (m *Embedder) batch(ctx context.Context, texts [][]int32, some []int, length int, out [][]float32) error {
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	x := extents{roundUp(len(some)), length}
	p, err := m.plan(x)
	if err != nil {
		return err
	}
	s := tensor.Shape{x.batch, x.length}
	ids, mask := make([]int64, s.Elements()), make([]int64, s.Elements())
	for row, i := range some {
		for at, id := range texts[i] {
			ids[row*length+at], mask[row*length+at] = int64(id), 1
		}
		for at := len(texts[i]); at < length; at++ {
			ids[row*length+at] = int64(m.encoder.Padding)
		}
	}
	got, err := p.run(ctx, map[string]*tensor.Tensor{IDs: tensor.Must(tensor.From(s, ids)), Mask: tensor.Must(tensor.From(s, mask))})
	if err != nil {
		return err
	}
	width := m.encoder.Width
	all := tensor.Of[float32](got)
	for row, i := range some {
		out[i] = slices.Clone(all[row*width : (row+1)*width])
	}
	return nil
}

// plan returns the graph of some extents, prepared.
func (m *Embedder) plan(x extents) (*plan, error) {
	if p := m.plans[x]; p != nil {
		return p, nil
	}
	g, err := m.encoder.Graph(x.batch, x.length)
	if err != nil {
		return nil, err
	}
	typed, err := op.Infer(g, lower.FP32)
	if err != nil {
		return nil, err
	}
	p := &plan{}
	if p.program, err = typed.Function(); err != nil {
		return nil, err
	}
	if p.runner, err = m.exec.Prepare(p.program); err != nil {
		return nil, err
	}
	if len(m.plans) >= maxPlans {
		clear(m.plans)
	}
	m.plans[x] = p
	return p, nil
}

// run returns the vectors of inputs by name.
func (p *plan) run(ctx context.Context, in map[string]*tensor.Tensor) (*tensor.Tensor, error) {
	start := &graph.State{Slots: p.program.Slots, Tensors: make([]*tensor.Tensor, len(p.program.Slots))}
	for i, slot := range p.program.Slots {
		start.Tensors[i] = in[slot.Name]
	}
	end, err := p.runner.Run(ctx, graph.Inputs{States: []*graph.State{start}}, nil)
	if err != nil {
		return nil, err
	}
	return end.Find(Embedding), nil
}
