package steps

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/merkle"
	"github.com/tally-network/tally/model/lm"
)

// Witness is the account of one reply by somebody who has the model. It computes what it is asked for, and all chunks before that.
type Witness struct {
	ctx     context.Context // that of who asked for the account: a game outlives each of its moves
	table   *Table
	exec    engine.Executor
	threads int
	request *lm.Request
	tokens  []int32          // prompt and reply
	place   dispute.Sequence // for places alone
	stages  *lm.Stages
	sampler *lm.Sampler

	mu     sync.Mutex
	chunks []*chunk // those that are computed
	run    runners
	last   struct { // the execution that was asked for last: a game asks for it again and again
		chunk, column, judged int
		*dispute.Execution
	}
}

// chunk is what the steps of one chunk give.
type chunk struct {
	values, pages []canon.Hash
	kept          []*graph.State // keys and values of each layer
	wrong         int
}

// Witness returns the account of a reply that is read by an executor. It does not ask whether the request could be made: what a receipt has is
// judged as it stands. What it computes ends with ctx.
func (t *Table) Witness(ctx context.Context, e engine.Executor, threads int, r *lm.Request, reply []int32) (*Witness, error) {
	w := &Witness{
		ctx: ctx, table: t, exec: e, threads: threads, request: r, tokens: slices.Concat(r.Prompt, reply), stages: t.model.Stages(e), sampler: t.model.NewSampler(e),
		place: dispute.Sequence{Model: dispute.Model{Layers: t.Layers, Chunks: t.Chunks}, Prompt: len(r.Prompt), Reply: len(reply)},
		run:   runners{exec: e, of: map[cell]*runner{}},
	}
	return w, w.place.Check()
}

// read is how many tokens the model has read.
func (w *Witness) read() int { return len(w.tokens) - 1 }

// Pages implements dispute.SequenceWitness.
func (w *Witness) Pages() (chunks, tokens []canon.Hash, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := (w.read() + lm.Chunk - 1) / lm.Chunk
	if err := w.reach(n - 1); err != nil {
		return nil, nil, err
	}
	for _, c := range w.chunks {
		chunks = append(chunks, canon.Root(c.pages))
	}
	return chunks, lm.TokenPages(w.tokens), nil
}

// Chunk implements dispute.SequenceWitness.
func (w *Witness) Chunk(c int) (values, pages []canon.Hash, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.reach(c); err != nil {
		return nil, nil, err
	}
	return w.chunks[c].values, w.chunks[c].pages, nil
}

// Wrong implements dispute.SequenceWitness.
func (w *Witness) Wrong(c int) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.reach(c); err != nil {
		return 0, err
	}
	return w.chunks[c].wrong, nil
}

// Step implements dispute.SequenceWitness.
func (w *Witness) Step(c, column int) (program, weights canon.Hash, path []canon.Hash, err error) {
	if err := w.check(c, column); err != nil {
		return canon.Hash{}, canon.Hash{}, nil, err
	}
	program, weights, path = w.table.Step(c, column)
	return program, weights, path, nil
}

func (w *Witness) check(c, column int) error {
	if c < 0 || c*lm.Chunk >= w.read() || column < 0 || column >= w.table.model.Columns() {
		return fmt.Errorf("chunk %d, column %d: the reply has no such step", c, column)
	}
	return nil
}

// Execute implements dispute.SequenceWitness.
func (w *Witness) Execute(c, column, judged int) (*dispute.Execution, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last.Execution != nil && w.last.chunk == c && w.last.column == column && w.last.judged == judged {
		return w.last.Execution, nil
	}
	w.last.Execution = nil
	if err := w.check(c, column); err != nil {
		return nil, err
	}
	if err := w.reach(c); err != nil {
		return nil, err
	}
	x, err := w.before(c, column)
	if err != nil {
		return nil, err
	}
	f, err := w.runner(c, column)
	if err != nil {
		return nil, err
	}
	e, err := dispute.Execute(f.program, f.program.Commit(), w.inputs(c, column, judged, x), func(in graph.Inputs, observe graph.Observer) (*graph.State, error) {
		return f.Run(w.ctx, in, observe)
	})
	if err != nil {
		return nil, err
	}
	w.last.chunk, w.last.column, w.last.judged, w.last.Execution = c, column, judged, e
	return e, nil
}

// before returns the x that a column reads, of a chunk whose pages are there.
func (w *Witness) before(c, column int) (x *graph.State, err error) {
	if column == 0 {
		return nil, nil
	}
	x, err = w.compute(c, 0, nil)
	for i := 2; err == nil && i < column; i += 2 {
		x, err = w.compute(c, i, x)
	}
	return x, err
}

// reach computes chunks up to one.
func (w *Witness) reach(last int) error {
	if err := w.check(last, 0); err != nil {
		return err
	}
	for len(w.chunks) <= last {
		c := &chunk{}
		w.chunks = append(w.chunks, c)
		if err := w.fill(len(w.chunks)-1, c); err != nil {
			w.chunks = w.chunks[:len(w.chunks)-1]
			return err
		}
	}
	return nil
}

// fill computes a chunk, the last of those that there are.
func (w *Witness) fill(at int, c *chunk) error {
	x, err := w.compute(at, 0, nil)
	if err != nil {
		return err
	}
	note := func(to *[]canon.Hash, s *graph.State) error {
		root, err := merkle.StateRoot(s, w.threads)
		*to = append(*to, root)
		return err
	}
	if err := note(&c.values, x); err != nil {
		return err
	}
	for i := range w.table.Layers {
		p, err := w.compute(at, 2*i+1, x)
		if err != nil {
			return err
		}
		c.kept = append(c.kept, p)
		if err := note(&c.pages, p); err != nil {
			return err
		}
		if x, err = w.compute(at, 2*i+2, x); err != nil {
			return err
		}
		if err := note(&c.values, x); err != nil {
			return err
		}
	}
	c.wrong, err = w.firstWrong(at, x.Find("x"))
	return err
}

// firstWrong returns the first token that a chunk draws otherwise than it stands, or that follows one that ends replies.
func (w *Witness) firstWrong(at int, x *tensor.Tensor) (int, error) {
	first := at * lm.Chunk
	from, to := max(first, len(w.request.Prompt)-1), min(first+lm.Chunk, w.read()) // rows that draw
	if from >= to {
		return -1, nil
	}
	if w.request.Form != nil { // no step judges what a form lets be drawn
		ends := func(id int32) bool { return slices.Contains(w.request.Ends, id) }
		if i := slices.IndexFunc(w.tokens[max(from, len(w.request.Prompt)):to], ends); i >= 0 {
			return max(from, len(w.request.Prompt)) + i + 1, nil
		}
		return -1, nil
	}
	draws, err := w.sampler.Begin(w.at(from + 1))
	if err != nil {
		return 0, err
	}
	logits, err := w.stages.Logits(w.ctx, x, from-first, to-from)
	if err != nil {
		return 0, err
	}
	for i := range to - from {
		judged := from + i + 1
		if judged > len(w.request.Prompt) && slices.Contains(w.request.Ends, w.tokens[judged-1]) {
			return judged, nil
		}
		one, err := logits.Row(i)
		if err != nil {
			return 0, err
		}
		drawn, err := draws.Draw(w.ctx, one, judged)
		if err != nil {
			return 0, err
		}
		if drawn.ID != w.tokens[judged] {
			return judged, nil
		}
	}
	return -1, nil
}

// at is the request of what comes from a place on, after all tokens before. What is no token of the model counts for none.
func (w *Witness) at(place int) *lm.Request {
	r := *w.request
	begins := len(r.Prompt) - r.Made
	r.Prompt, r.Made, r.Likeliest = nil, 0, 0
	for i, id := range w.tokens[:place] {
		if id < 0 || int(id) >= w.table.model.Vocabulary {
			continue
		}
		if r.Prompt = append(r.Prompt, id); i >= begins {
			r.Made++
		}
	}
	return &r
}

// compute computes a column out of x.
func (w *Witness) compute(c, column int, x *graph.State) (*graph.State, error) {
	f, err := w.runner(c, column)
	if err != nil {
		return nil, err
	}
	return f.Run(w.ctx, w.inputs(c, column, 0, x), nil)
}

// inputs are the states that a step reads.
func (w *Witness) inputs(c, column, judged int, x *graph.State) graph.Inputs {
	m := w.table.model
	in := []*graph.State{m.ColumnWeights(column), w.place.PlaceState(c, judged)}
	page := func(i int) *graph.State { return lm.TokenPage(w.tokens[i*lm.Chunk:]) }
	switch {
	case column == 0:
		in = append(in, page(c))
	case column == m.Columns()-1:
		in = append(in, w.request.State(), x)
		for i := range c + 1 {
			in = append(in, page(i))
		}
		in = append(in, page(min(c+1, (len(w.tokens)-1)/lm.Chunk)))
	case column%2 == 1:
		in = append(in, x)
	default:
		layer := column/2 - 1
		in = append(in, x, w.chunks[c].kept[layer])
		for _, before := range w.chunks[:c] {
			in = append(in, before.kept[layer])
		}
	}
	return graph.Inputs{States: in}
}

// runner is a program that an executor has prepared.
type runner struct {
	engine.Runner
	program *graph.Program
}

// runners are those of programs that every chunk has, and of one chunk.
type runners struct {
	exec  engine.Executor
	of    map[cell]*runner
	chunk int
}

func (w *Witness) runner(c, column int) (*runner, error) {
	if w.run.chunk != c { // those of another chunk are not kept
		w.run.chunk = c
		for at := range w.run.of { // each alone
			if at.chunk != 0 && at.chunk != c {
				delete(w.run.of, at)
			}
		}
	}
	at := cellOf(w.table.model, c, column)
	if f := w.run.of[at]; f != nil {
		return f, nil
	}
	p, err := w.table.model.Column(c, column)
	if err != nil {
		return nil, err
	}
	f := &runner{program: p}
	if f.Runner, err = w.prepare(at, p); err != nil {
		return nil, err
	}
	w.run.of[at] = f
	return f, nil
}

// prepare prepares a program: where another chunk's is planned already, by its plan.
func (w *Witness) prepare(at cell, p *graph.Program) (engine.Runner, error) {
	if first := w.run.of[cell{at.kind, 0}]; first != nil {
		if r, ok := first.Runner.(engine.Resizer); ok {
			if r, err := r.Resize(p); err == nil {
				return r, nil
			}
		}
	}
	return w.exec.Prepare(p)
}

var _ dispute.SequenceWitness = (*Witness)(nil)
