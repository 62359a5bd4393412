package lm

import (
	"context"
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
)

// Stages are a model as an executor runs it: cut where tokens look at others. What lies between depends on how many tokens there are, not on
// how long their sequences are, so it is planned once. Tokens of several sequences go through it together. The cuts change no bit.
//
// Stages are one goroutine's.
type Stages struct {
	model     *Model
	exec      engine.Executor
	first     planCache    // tokens → x, and queries, keys and values of layer 0
	between   []planCache  // x and what layer i saw → x, and those of layer i+1
	last      planCache    // x and what the last layer saw → x
	head      planCache    // x → logits
	attention []*planCache // by layer; layers that look equally far share one
}

// planCache has a graph for numbers of tokens: rows, and where they look at a cache its total. Each is prepared when it is needed.
type planCache struct {
	graph  func(rows, total int) *graph.Graph
	bySize map[[2]int]*prepared
	plans  map[bool]*prepared // what others are resized from: that of one token, and that of a chunk
}

func newPlanCache(g func(rows, total int) *graph.Graph) planCache {
	return planCache{g, map[[2]int]*prepared{}, map[bool]*prepared{}}
}

// paddedRows are the numbers of tokens that stages take: others are padded.
var paddedRows = []int{1, 2, 4, 8, 16, 32, 64, Chunk, 2 * Chunk}

// Chunk is how many tokens of one sequence are read at once, at most. It changes no bit.
const Chunk = dispute.ChunkTokens

// MaxRows is how many tokens a step takes at most.
const MaxRows = 2 * Chunk

func (c *planCache) at(e engine.Executor, rows, total int) (f *prepared, err error) {
	size := [2]int{rows, total}
	if f := c.bySize[size]; f != nil {
		return f, nil
	}
	one := rows == 1
	if c.plans[one] == nil {
		planned := rows
		if !one {
			planned = max(rows, Chunk)
		}
		if total > 0 {
			total += 2 * Chunk // it serves longer ones better than shorter ones
		}
		if c.plans[one], err = prepare(e, c.graph(planned, total)); err != nil {
			return nil, err
		}
	}
	if f, err = c.plans[one].resize(e, c.graph(size[0], size[1])); err == nil {
		c.bySize[size] = f
	}
	return f, err
}

// Stages prepares the model for an executor.
func (m *Model) Stages(e engine.Executor) *Stages {
	s := &Stages{model: m, exec: e}
	s.first = newPlanCache(func(rows, _ int) *graph.Graph {
		w := m.stage(rows)
		x := w.embed(w.b.Input("tokens", tensor.Int64, tensor.Shape{rows}))
		w.endStage(0, x)
		return w.b.Graph()
	})
	for i := range m.Layers - 1 {
		s.between = append(s.between, newPlanCache(func(rows, _ int) *graph.Graph {
			w := m.stage(rows)
			w.endStage(i+1, w.finish(i, w.state("x", m.Width), w.state("y", m.Heads*m.HeadSize)))
			return w.b.Graph()
		}))
	}
	s.last = newPlanCache(func(rows, _ int) *graph.Graph {
		w := m.writer(rows)
		w.output("out", w.finish(m.Layers-1, w.state("x", m.Width), w.state("y", m.Heads*m.HeadSize)))
		return w.b.Graph()
	})
	s.head = newPlanCache(func(rows, _ int) *graph.Graph {
		w := m.writer(rows)
		w.output("logits", w.reshape(w.head(w.state("x", m.Width)), rows, m.Vocabulary))
		return w.b.Graph()
	})
	alike := map[int]*planCache{}
	for i := range m.Layers {
		window := m.Windows[i]
		if alike[window] == nil {
			c := newPlanCache(func(rows, total int) *graph.Graph { return m.attentionGraph(i, rows, total) })
			alike[window] = &c
		}
		s.attention = append(s.attention, alike[window])
	}
	return s
}

// stage begins the graph of a stage before a layer. Its inputs are
//
//	places  int64 [rows]: of each token
//	tokens  int64 [rows], or
//	x, y    float32 [1, rows, …]: tokens between layers, and what they saw
//
// and its outputs out, like x, and q, k and v, float32 [rows, heads, HeadSize].
func (m *Model) stage(rows int) *writer {
	w := m.writer(rows)
	w.at = w.b.Input("places", tensor.Int64, tensor.Shape{rows})
	return w
}

func (w *writer) state(name string, width int) string {
	return w.b.Input(name, tensor.Float32, tensor.Shape{1, w.rows, width})
}

// endStage ends a stage before layer i looks.
func (w *writer) endStage(i int, x string) {
	w.output("out", x)
	w.places()
	for j, y := range w.project(i, x) {
		w.output([]string{"q", "k", "v"}[j], w.ofTokens(y))
	}
}

// attentionGraph is the graph of queries q [rows, Heads, HeadSize] that look at keys and values [total, Shared, HeadSize], the last of which are theirs.
// It gives y [1, rows, Heads·HeadSize].
func (m *Model) attentionGraph(i, rows, total int) *graph.Graph {
	w := m.writer(rows)
	in := func(name string, n, heads int) string {
		x := w.b.Input(name, tensor.Float32, tensor.Shape{n, heads, m.HeadSize})
		return w.byHeads(w.reshape(x, 1, n, heads, m.HeadSize))
	}
	y := w.b.With(m.attentionAttrs(i)...).Op("CachedAttention", in("q", rows, m.Heads), in("keys", total, m.Shared), in("values", total, m.Shared))
	w.output("y", w.reshape(w.byTokens(y), 1, rows, m.Heads*m.HeadSize))
	return w.b.Graph()
}

// Sequence is what a model keeps of the tokens that it has read: the keys and values of each. Its zero value has none.
type Sequence struct {
	Capacity int // tokens that it will have at most, as far as is known; 0: the context
	past     int
	kept     []*tensor.Tensor // keys and values of layer after layer, [room, Shared, HeadSize], of which the first past are in use

	pages []canon.Hash // roots of the first ones that are full, as far as they are known
}

// Len returns how many tokens there are.
func (q *Sequence) Len() int { return q.past }

// Cut forgets all tokens but the first n.
func (q *Sequence) Cut(n int) {
	q.past = max(0, min(n, q.past))
	q.pages = q.pages[:min(len(q.pages), q.past/Chunk)]
}

// Bytes is what the sequence takes.
func (q *Sequence) Bytes() int {
	n := 0
	for _, x := range q.kept {
		n += len(x.Bytes())
	}
	return n
}

// Copy returns a sequence of the first n tokens, which goes its own way.
func (q *Sequence) Copy(n int) (*Sequence, error) {
	c := &Sequence{past: max(0, min(n, q.past)), kept: make([]*tensor.Tensor, len(q.kept))}
	c.pages = slices.Clone(q.pages[:min(len(q.pages), c.past/Chunk)])
	for i, x := range q.kept {
		s := x.Shape.Clone()
		s[0] = max(c.past, 1)
		y, err := tensor.New(x.Type, s)
		if err != nil {
			return nil, err
		}
		copy(y.Bytes(), x.Bytes())
		c.kept[i] = y
	}
	return c, nil
}

// Part is what a step reads of one sequence. A sequence is in one part of a step at most.
type Part struct {
	Sequence *Sequence
	Tokens   []int32
	Logits   int // logits are wanted of this many of the last tokens
}

// Step reads the tokens of all parts, MaxRows at most. It returns the logits that are wanted, [Logits, Vocabulary] of each part; nil where
// there are none. After an error the sequences may not be used again.
func (s *Stages) Step(ctx context.Context, parts []Part) ([]*tensor.Tensor, error) {
	b, err := s.bind(parts)
	if err != nil {
		return nil, err
	}
	defer s.forget()
	end, err := s.run(ctx, &s.first, b, nil)
	for i := 0; err == nil; i++ {
		y, attendErr := s.attend(ctx, i, b, end)
		if attendErr != nil {
			return nil, attendErr
		}
		in := map[string]*tensor.Tensor{"x": end.Find("out"), "y": y}
		if i == s.model.Layers-1 {
			if end, err = s.run(ctx, &s.last, b, in); err == nil {
				break
			}
		} else {
			end, err = s.run(ctx, &s.between[i], b, in)
		}
	}
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		p.Sequence.past += len(p.Tokens)
	}
	return s.logits(ctx, parts, end.Find("out"))
}

// forget lets go of what served the lengths of one step.
func (s *Stages) forget() {
	for _, l := range s.attention {
		clear(l.bySize)
	}
}

// bound are the inputs of a step.
type bound struct {
	parts          []Part
	rows, room     int // tokens, and as many as functions take
	tokens, places *tensor.Tensor
}

func (s *Stages) bind(parts []Part) (*bound, error) {
	m := s.model
	b := &bound{parts: parts}
	for _, p := range parts {
		switch n := len(p.Tokens); {
		case n == 0 || p.Logits < 0 || p.Logits > n:
			return nil, fmt.Errorf("%s: no tokens to read", m.Family)
		case n > m.Context-p.Sequence.past:
			return nil, fmt.Errorf("%s: %d tokens after %d are more than its context of %d", m.Family, n, p.Sequence.past, m.Context)
		}
		b.rows += len(p.Tokens)
	}
	if b.rows > MaxRows {
		return nil, fmt.Errorf("%s: %d tokens at once, at most %d", m.Family, b.rows, MaxRows)
	}
	b.room = roomFor(b.rows)
	tokens, places := make([]int64, 0, b.room), make([]int64, 0, b.room)
	for _, p := range parts {
		for i, t := range p.Tokens {
			if t < 0 || int(t) >= m.Vocabulary {
				return nil, fmt.Errorf("%s: token %d: want 0 to %d", m.Family, t, m.Vocabulary-1)
			}
			tokens, places = append(tokens, int64(t)), append(places, int64(p.Sequence.past+i))
		}
		if p.Sequence.kept == nil {
			p.Sequence.kept = make([]*tensor.Tensor, 2*m.Layers)
		}
	}
	b.tokens = tensor.Must(tensor.From(tensor.Shape{b.room}, tokens[:b.room]))
	b.places = tensor.Must(tensor.From(tensor.Shape{b.room}, places[:b.room]))
	return b, nil
}

// roomFor returns how many tokens a function takes that is to take rows.
func roomFor(rows int) int {
	for _, n := range paddedRows {
		if n >= rows {
			return n
		}
	}
	return MaxRows
}

// run runs a stage.
func (s *Stages) run(ctx context.Context, l *planCache, b *bound, in map[string]*tensor.Tensor) (*graph.State, error) {
	f, err := l.at(s.exec, b.room, 0)
	if err != nil {
		return nil, err
	}
	if in == nil {
		in = map[string]*tensor.Tensor{"tokens": b.tokens}
	}
	in["places"] = b.places
	return f.call(ctx, in)
}

// attend lets the tokens of a step look at their sequences, which get their keys and values. It returns what they saw.
func (s *Stages) attend(ctx context.Context, layer int, b *bound, end *graph.State) (*tensor.Tensor, error) {
	m := s.model
	y, err := tensor.New(tensor.Float32, tensor.Shape{1, b.room, m.Heads * m.HeadSize})
	if err != nil {
		return nil, err
	}
	q, k, v := end.Find("q"), end.Find("k"), end.Find("v")
	seen := tensor.Must(y.Part(0, y.Type, tensor.Shape{b.room, m.Heads * m.HeadSize}))
	of := make([]engine.Attended, len(b.parts))
	row, most := 0, 0
	for i, p := range b.parts {
		n, x := len(p.Tokens), &of[i]
		if x.Keys, err = p.Sequence.keep(2*layer, k, row, n, m.Context); err != nil {
			return nil, err
		}
		if x.Values, err = p.Sequence.keep(2*layer+1, v, row, n, m.Context); err != nil {
			return nil, err
		}
		if x.Queries, err = rowsOf(q, row, n); err != nil {
			return nil, err
		}
		if x.Out, err = rowsOf(seen, row, n); err != nil {
			return nil, err
		}
		row, most = row+n, max(most, n)
	}
	if a, ok := s.exec.(engine.Attender); ok && most <= attendedRows {
		if served, err := a.Attend(ctx, m.attended(layer), of); served || err != nil {
			return y, err
		}
	}
	return y, s.attendByPrograms(ctx, layer, b, of, y)
}

// attendedRows are the tokens of a sequence up to which an executor attends without a program: of more, a program multiplies matrices.
const attendedRows = 8

// attendByPrograms is attend by a program for each length.
func (s *Stages) attendByPrograms(ctx context.Context, layer int, b *bound, of []engine.Attended, y *tensor.Tensor) error {
	row, width := 0, s.model.Heads*s.model.HeadSize*tensor.Float32.Size()
	for i, p := range b.parts {
		n := len(p.Tokens)
		f, err := s.attention[layer].at(s.exec, n, p.Sequence.past+n)
		if err != nil {
			return err
		}
		out, err := f.call(ctx, map[string]*tensor.Tensor{"q": of[i].Queries, "keys": of[i].Keys, "values": of[i].Values})
		if err != nil {
			return err
		}
		copy(y.Bytes()[row*width:], out.Find("y").Bytes())
		row += n
	}
	return nil
}

// attended is attention in a layer.
func (m *Model) attended(layer int) engine.Attention {
	return engine.Attention{Heads: m.Heads, Shared: m.Shared, Size: m.HeadSize, Window: m.Windows[layer], Scale: m.Scale, Softcap: m.Softcap}
}

// rowsOf returns n rows of x, from one on: its memory, if they begin at a word.
func rowsOf(x *tensor.Tensor, from, n int) (*tensor.Tensor, error) {
	s := x.Shape.Clone()
	s[0] = n
	at := from * s[1:].Elements() * x.Type.Size()
	if at%8 == 0 {
		return x.Part(at, x.Type, s)
	}
	y, err := tensor.New(x.Type, s)
	if err == nil {
		copy(y.Bytes(), x.Bytes()[at:])
	}
	return y, err
}

// keep puts n rows of keys or values x, from one on, behind those that there are, and returns all.
func (q *Sequence) keep(at int, x *tensor.Tensor, row, n, most int) (*tensor.Tensor, error) {
	need := q.past + n
	token := x.Shape[1:].Elements() * x.Type.Size()
	if old := q.kept[at]; old == nil || old.Shape[0] < need {
		s := x.Shape.Clone()
		if q.Capacity > 0 {
			most = min(q.Capacity, most)
		}
		s[0] = max(min(max(2*q.past, Chunk), most), need)
		room, err := tensor.New(x.Type, s)
		if err != nil {
			return nil, err
		}
		if old != nil {
			copy(room.Bytes(), old.Bytes()[:q.past*token])
		}
		q.kept[at] = room
	}
	copy(q.kept[at].Bytes()[q.past*token:], x.Bytes()[row*token:][:n*token])
	return rowsOf(q.kept[at], 0, need)
}

// Logits returns the logits of n tokens, from one on, of x [1, rows, Width], as the last layer gives it.
func (s *Stages) Logits(ctx context.Context, x *tensor.Tensor, from, n int) (*tensor.Tensor, error) {
	if n < 1 || from < 0 || n > MaxRows || len(x.Shape) != 3 || x.Shape[2] != s.model.Width || x.Shape[0] != 1 || from > x.Shape[1]-n {
		return nil, fmt.Errorf("%s: tokens %d to %d of %v", s.model.Family, from, from+n-1, x.Shape)
	}
	out, err := s.logits(ctx, []Part{{Tokens: make([]int32, from+n), Logits: n}}, x)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// logits computes those that are wanted, of x [1, room, Width].
func (s *Stages) logits(ctx context.Context, parts []Part, x *tensor.Tensor) ([]*tensor.Tensor, error) {
	m := s.model
	total := 0
	for _, p := range parts {
		total += p.Logits
	}
	out := make([]*tensor.Tensor, len(parts))
	if total == 0 {
		return out, nil
	}
	room := roomFor(total)
	chosen, err := tensor.New(tensor.Float32, tensor.Shape{1, room, m.Width})
	if err != nil {
		return nil, err
	}
	from, to := tensor.Of[float32](x), tensor.Of[float32](chosen)
	row := 0
	for _, p := range parts {
		row += len(p.Tokens)
		to = to[copy(to, from[(row-p.Logits)*m.Width:row*m.Width]):]
	}
	f, err := s.head.at(s.exec, room, 0)
	if err != nil {
		return nil, err
	}
	end, err := f.call(ctx, map[string]*tensor.Tensor{"x": chosen})
	if err != nil {
		return nil, err
	}
	row = 0
	for i, p := range parts {
		if p.Logits > 0 {
			if out[i], err = rowsOf(end.Find("logits"), row, p.Logits); err != nil {
				return nil, err
			}
			row += p.Logits
		}
	}
	return out, nil
}
