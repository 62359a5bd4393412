package lm

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
)

// Stages are a model as an executor runs it: cut where tokens look at others. What lies between depends on how many tokens there are, not on
// how long their sequences are, so it is planned once. Tokens of several sequences go through it together. The cuts change no bit.
//
// Models that differ in their adapters share the stages of their base. Weights of adapters are inputs, so one that comes or goes is not planned for.
//
// Stages are one goroutine's.
type Stages struct {
	model     *Model      // the base
	own       *Model      // whose tokens are read, where a part says nothing else
	sizes     []stageSize // with adapters, that are prepared; the last used last
	exec      engine.Executor
	first     planCache    // tokens → x, and queries, keys and values of layer 0
	between   []planCache  // x and what layer i saw → x, and those of layer i+1
	last      planCache    // x and what the last layer saw → x
	head      planCache    // x → logits
	attention []*planCache // by layer; layers that look equally far share one
}

// planCache has a graph for each size. Each is prepared when it is needed.
type planCache struct {
	graph  func(stageSize) *graph.Graph
	bySize map[stageSize]*prepared
	plans  map[planKind]*prepared // what others are resized from
}

// stageSize is what a stage is for: so many tokens, where they look at a cache its total, and their adapters.
type stageSize struct {
	rows, total int
	adapters    stageAdapters
}

// planKind tells the plan of one token from that of a chunk, and by adapters.
type planKind struct {
	one      bool
	adapters stageAdapters
}

func (s stageSize) kind() planKind { return planKind{s.rows == 1, s.adapters} }

func newPlanCache(g func(stageSize) *graph.Graph) planCache {
	return planCache{g, map[stageSize]*prepared{}, map[planKind]*prepared{}}
}

// paddedRows are the numbers of tokens that stages take: others are padded.
var paddedRows = []int{1, 2, 4, 8, 16, 32, 64, Chunk, 2 * Chunk}

// Chunk is how many tokens of one sequence are read at once, at most. It changes no bit.
const Chunk = dispute.ChunkTokens

// MaxRows is how many tokens a step takes at most.
const MaxRows = 2 * Chunk

func (c *planCache) at(e engine.Executor, size stageSize) (f *prepared, err error) {
	if f := c.bySize[size]; f != nil {
		return f, nil
	}
	kind := size.kind()
	if c.plans[kind] == nil {
		planned := size
		if !kind.one {
			planned.rows = max(size.rows, Chunk)
		}
		if size.total > 0 {
			planned.total += 2 * Chunk // it serves longer ones better than shorter ones
		}
		if c.plans[kind], err = prepare(e, c.graph(planned)); err != nil {
			return nil, err
		}
	}
	if f, err = c.plans[kind].resize(e, c.graph(size)); err == nil {
		c.bySize[size] = f
	}
	return f, err
}

// Stages prepares the model for an executor.
func (m *Model) Stages(e engine.Executor) *Stages {
	s := &Stages{model: m.base(), own: m, exec: e}
	m = s.model
	s.first = newPlanCache(func(size stageSize) *graph.Graph {
		w := m.stage(size)
		x := w.embed(w.b.Input("tokens", tensor.Int64, tensor.Shape{size.rows}))
		w.endStage(0, x)
		return w.b.Graph()
	})
	for i := range m.Layers - 1 {
		s.between = append(s.between, newPlanCache(func(size stageSize) *graph.Graph {
			w := m.stage(size)
			w.endStage(i+1, w.finish(i, w.state("x", m.Width), w.state("y", m.Heads*m.HeadSize)))
			return w.b.Graph()
		}))
	}
	s.last = newPlanCache(func(size stageSize) *graph.Graph {
		w := m.writer(size.rows)
		w.beside = size.adapters
		w.output("out", w.finish(m.Layers-1, w.state("x", m.Width), w.state("y", m.Heads*m.HeadSize)))
		return w.b.Graph()
	})
	s.head = newPlanCache(func(size stageSize) *graph.Graph {
		w := m.writer(size.rows)
		w.output("logits", w.reshape(w.head(w.state("x", m.Width)), size.rows, m.Vocabulary))
		return w.b.Graph()
	})
	alike := map[int]*planCache{}
	for i := range m.Layers {
		window := m.Windows[i]
		if alike[window] == nil {
			c := newPlanCache(func(size stageSize) *graph.Graph { return m.attentionGraph(i, size) })
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
// those of [writer.slot] and [writer.has] for adapters,
// and its outputs out, like x, and q, k and v, float32 [rows, heads, HeadSize].
func (m *Model) stage(size stageSize) *writer {
	w := m.writer(size.rows)
	w.beside = size.adapters
	w.at = w.b.Input("places", tensor.Int64, tensor.Shape{size.rows})
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
func (m *Model) attentionGraph(i int, size stageSize) *graph.Graph {
	rows, total := size.rows, size.total
	w := m.writer(rows)
	in := func(name string, n, heads int) string {
		x := w.b.Input(name, tensor.Float32, tensor.Shape{n, heads, m.HeadSize})
		return w.byHeads(w.reshape(x, 1, n, heads, m.HeadSize))
	}
	y := w.b.With(m.attentionAttrs(i)...).Op("CachedAttention", in("q", rows, m.Heads), in("keys", total, m.Shared), in("values", total, m.Shared))
	w.output("y", w.reshape(w.byTokens(y), 1, rows, m.Heads*m.HeadSize))
	return w.b.Graph()
}

// Part is what a step reads of one sequence. A sequence is in one part of a step at most.
type Part struct {
	Sequence *Sequence
	Tokens   []int32
	Logits   int    // logits are wanted of this many of the last tokens
	Model    *Model // whose the sequence is, of those that share the stages' base; nil: that of the stages
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

// modelOf returns whose tokens a part has.
func (s *Stages) modelOf(p Part) *Model {
	if p.Model == nil {
		return s.own
	}
	return p.Model
}

// bound are the inputs of a step.
type bound struct {
	parts          []Part
	rows, room     int // tokens, and as many as functions take
	tokens, places *tensor.Tensor
	adapters       stageAdapters
	adapted        []*Model       // slot by slot
	slots          *tensor.Tensor // of each token its slot; −1: none
}

func (s *Stages) bind(parts []Part) (*bound, error) {
	m := s.model
	b := &bound{parts: parts}
	var mix Mix
	for _, p := range parts {
		if of := s.modelOf(p); !of.SharesBase(m) || !mix.Take(of) {
			return nil, fmt.Errorf("%s: tokens of models that no step reads together", m.Family)
		}
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
	s.bindAdapters(b, &mix)
	b.tokens = tensor.Must(tensor.From(tensor.Shape{b.room}, tokens[:b.room]))
	b.places = tensor.Must(tensor.From(tensor.Shape{b.room}, places[:b.room]))
	return b, nil
}

// planCaches are those of stages that multiply by weights of layers.
func (s *Stages) planCaches() []*planCache {
	all := []*planCache{&s.first, &s.last}
	for i := range s.between {
		all = append(all, &s.between[i])
	}
	return all
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
	f, err := l.at(s.exec, stageSize{rows: b.room, adapters: b.adapters})
	if err != nil {
		return nil, err
	}
	if in == nil {
		in = map[string]*tensor.Tensor{"tokens": b.tokens}
	}
	in["places"], in["slots"] = b.places, b.slots
	for _, slot := range f.program.Slots {
		if n, weight, ok := strings.Cut(slot.Name, "/"); ok {
			i, _ := strconv.Atoi(n) // as writer.slot writes it
			in[slot.Name] = b.adapted[i].adapter.inputs[weight]
		}
	}
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
		f, err := s.attention[layer].at(s.exec, stageSize{rows: n, total: p.Sequence.past + n})
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
	f, err := s.head.at(s.exec, stageSize{rows: room})
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
