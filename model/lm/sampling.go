package lm

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/model/lm/family"
)

// Candidates is how many of the greatest logits take part at most, where a sampling has TopK, TopP or MinP.
const Candidates = 1024

// MaxLikeliest bounds Request.Scores.
const MaxLikeliest = 20

// Check refuses what no token can be drawn by.
func (s *Sampling) Check(vocabulary int) error {
	for name, x := range map[string]float32{"the temperature": s.Temperature, "top_p": s.TopP, "min_p": s.MinP, "the repetition penalty": s.Repeat} { // each alone
		if !family.Finite(x) || x < 0 {
			return fmt.Errorf("%s is %v: want a number of at least 0", name, x)
		}
	}
	switch {
	case !family.Finite(s.Presence) || !family.Finite(s.Frequency):
		return fmt.Errorf("the penalties are %v for presence, %v for frequency: want finite numbers", s.Presence, s.Frequency)
	case s.TopP > 1 || s.MinP > 1:
		return fmt.Errorf("top_p is %v, min_p %v: want at most 1", s.TopP, s.MinP)
	case s.TopK < 0:
		return fmt.Errorf("top_k is %d: want at least 1, or 0 for all", s.TopK)
	case len(s.Bias) > MaxBias:
		return fmt.Errorf("%d tokens have a bias: want at most %d", len(s.Bias), MaxBias)
	}
	for id, by := range s.Bias { // each alone
		if id < 0 || int(id) >= vocabulary || !family.Finite(by) {
			return fmt.Errorf("a bias of %v for token %d: want a finite one for tokens 0 to %d", by, id, vocabulary-1)
		}
	}
	return nil
}

// samplerShape is what of a sampling decides the graph; numbers are its inputs.
type samplerShape struct {
	penalties, bias, random, filters, logProbs bool

	form bool // what may come is given
}

func (r *Request) shape() samplerShape {
	s := &r.Sampling
	d := samplerShape{
		penalties: s.Presence != 0 || s.Frequency != 0 || s.Repeat != 0 && s.Repeat != 1,
		bias:      len(s.Bias) > 0, random: s.Temperature != 0, logProbs: r.Likeliest > 0, form: r.Form != nil,
	}
	d.filters = d.random && (s.TopK != 0 || s.TopP != 0 && s.TopP != 1 || s.MinP != 0)
	return d
}

// graph returns the graph that draws a token from logits of a vocabulary. Its inputs, float32 unless said otherwise, are
//
//	logits   [vocabulary]
//	prompt, reply  [vocabulary]: how often each token is in the prompt, and in the reply so far
//	repeat, presence, frequency  [1]
//	bias     [vocabulary]
//	temperature  [1], above 0
//	key      uint32 [2]: of seed and place, as Key gives it
//	k        int64 [1]; p, min  [1]: as Sampling has them, where all take part vocabulary, 1 and 0
//	mask     bool [vocabulary]: which tokens may come. Those that may not are no terms of any sum, and are never drawn
//
// of which it has those that it needs. In place of mask it has the tables of a form, if these are given: formShape.mask says which.
// Its outputs are
//
//	token    int64 [1]
//	log_prob [1]: the logarithm of its probability by the logits as they were
//	likeliest, log_probs  int64 and float32 [MaxLikeliest]: the likeliest tokens, and theirs
//	next     int64 [1]: the state after the token, of a form by its tables
//
// The greatest of logit − ln(−ln u) is drawn, with u of key and the token's id: that is a draw by the probabilities that
// the logits stand for. Of equals the first is taken.
func (d samplerShape) graph(vocabulary int, tables *formShape) *graph.Graph {
	w := &samplerGraph{b: graph.NewBuilder("draw"), all: vocabulary}
	logits := w.input("logits", vocabulary)
	after := "" // each token
	switch {
	case d.form && tables != nil:
		w.mask, after = tables.mask(w.b, vocabulary)
	case d.form:
		w.mask = w.b.Input("mask", tensor.Bool, tensor.Shape{vocabulary})
	}
	x := logits
	if d.penalties {
		x = w.penalised(x)
	}
	if d.bias {
		x = w.b.Op("Add", x, w.input("bias", vocabulary))
	}
	var token string
	switch {
	case !d.random:
		token = w.greatest(w.masked(x))
	case d.filters:
		token = w.ofGreatest(w.masked(w.b.Op("Div", x, w.input("temperature", 1))))
	default:
		x = w.masked(w.b.Op("Div", x, w.input("temperature", 1)))
		token = w.greatest(w.b.Op("Add", x, w.noise(w.b.Const(tensor.Must(tensor.From(tensor.Shape{vocabulary}, ids(vocabulary)))))))
	}
	w.output("token", token)
	if d.logProbs {
		w.logProbs(logits, token)
	}
	if after != "" {
		w.output("next", w.b.With(graph.Int("axis", 0)).Op("Gather", after, token))
	}
	return w.b.Graph()
}

func ids(n int) []uint32 {
	x := make([]uint32, n)
	for i := range x {
		x[i] = uint32(i)
	}
	return x
}

// samplerGraph writes the graph of a shape.
type samplerGraph struct {
	b     *graph.Builder
	all   int               // tokens
	given map[string]string // values that are no inputs, by the inputs' names
	mask  string            // which tokens may come; empty: all
}

func (w *samplerGraph) input(name string, n int) string {
	if x := w.given[name]; x != "" {
		return x
	}
	return w.b.Input(name, tensor.Float32, tensor.Shape{n})
}

func (w *samplerGraph) output(name, x string) {
	w.b.Output(w.b.With().As(name).Op("Identity", x), 0, nil)
}

func (w *samplerGraph) greatest(x string) string { return w.b.Op("ArgMax", x) }

// masked leaves out the tokens that may not come: they are less than any that may, whatever the model says of these.
func (w *samplerGraph) masked(x string) string {
	if w.mask == "" {
		return x
	}
	b := w.b
	least := b.Scalar(-math.MaxFloat32)
	x = b.Op("Where", b.Op("Greater", x, least), x, least) // also what is no number
	return b.Op("Where", w.mask, x, b.Scalar(float32(math.Inf(-1))))
}

// penalised makes tokens less likely that were there already.
func (w *samplerGraph) penalised(x string) string {
	b := w.b
	prompt, reply := w.input("prompt", w.all), w.input("reply", w.all)
	by := w.input("repeat", 1)
	seen := b.Op("Greater", b.Op("Add", prompt, reply), b.Scalar(0))
	less := b.Op("Where", b.Op("Greater", x, b.Scalar(0)), b.Op("Div", x, by), b.Op("Mul", x, by))
	x = b.Op("Where", seen, less, x)
	x = b.Op("Sub", x, b.Op("Mul", reply, w.input("frequency", 1)))
	return b.Op("Where", b.Op("Greater", reply, b.Scalar(0)), b.Op("Sub", x, w.input("presence", 1)), x)
}

// ofGreatest draws among the greatest.
func (w *samplerGraph) ofGreatest(x string) string {
	b, n := w.b, min(w.all, Candidates)
	found := b.With(graph.Int("axis", 0)).Ops("TopK", 2, x, b.Ints(n))
	top, at := found[0], found[1]
	likely := b.With(graph.Int("axis", 0)).Op("GatherElements", b.With(graph.Int("axis", 0)).Op("Softmax", x), at)
	places := b.Const(tensor.Must(tensor.From(tensor.Shape{n}, numbers(n))))
	k := w.given["k"]
	if k == "" {
		k = b.Input("k", tensor.Int64, tensor.Shape{1})
	}
	before := b.With(graph.Int("exclusive", 1)).Op("CumSum", likely, b.Const(tensor.Scalar(int64(0))))
	first := w.part(likely, 0)
	keep := b.Op("And", b.Op("Less", places, k), b.Op("Less", before, w.input("p", 1)))
	keep = b.Op("And", keep, b.Op("GreaterOrEqual", likely, b.Op("Mul", first, w.input("min", 1))))
	y := b.Op("Add", top, w.noise(b.Cast(at, tensor.Uint32)))
	chosen := w.greatest(b.Op("Where", keep, y, b.Scalar(float32(math.Inf(-1)))))
	return b.With(graph.Int("axis", 0)).Op("Gather", at, chosen)
}

func numbers(n int) []int64 {
	x := make([]int64, n)
	for i := range x {
		x[i] = int64(i)
	}
	return x
}

// noise is −ln(−ln u) for each token id, uint32.
func (w *samplerGraph) noise(id string) string {
	low, high := w.given["low key"], w.given["high key"]
	if low == "" {
		key := w.b.Input("key", tensor.Uint32, tensor.Shape{2})
		low, high = w.part(key, 0), w.part(key, 1)
	}
	return op.Noise(w.b, op.Words(w.b, id, low, high))
}

// part is one element.
func (w *samplerGraph) part(x string, i int) string {
	return w.b.Op("Slice", x, w.b.Ints(i), w.b.Ints(i+1))
}

// logProbs writes how likely tokens were.
func (w *samplerGraph) logProbs(logits, token string) {
	b := w.b
	all := b.With(graph.Int("axis", 0)).Op("LogSoftmax", logits)
	w.output("log_prob", b.With(graph.Int("axis", 0)).Op("Gather", all, token))
	found := b.With(graph.Int("axis", 0)).Ops("TopK", 2, all, b.Ints(min(w.all, MaxLikeliest)))
	w.output("log_probs", found[0])
	w.output("likeliest", found[1])
}

// Key returns what the draw at a place of a sequence depends on.
func Key(seed uint64, place int) [2]uint32 {
	k := op.Mix(uint32(place) + op.Mix(uint32(place>>32)))
	return [2]uint32{op.Mix(uint32(seed) + k), op.Mix(uint32(seed>>32) + op.Mix(k))}
}

// ReplySampler draws the tokens of one reply.
type ReplySampler struct {
	of        samplerShape
	fn        *prepared
	in        map[string]*tensor.Tensor
	seed      uint64
	likeliest int
	follows   *Follower
}

// Sampler draws tokens of a vocabulary. It is one goroutine's.
type Sampler struct {
	exec       engine.Executor
	forms      *Forms
	vocabulary int
	prepared   map[samplerShape]*prepared
}

// NewSampler returns what draws the model's tokens.
func (m *Model) NewSampler(e engine.Executor) *Sampler {
	return &Sampler{exec: e, forms: m.forms, vocabulary: m.Vocabulary, prepared: map[samplerShape]*prepared{}}
}

// Begin returns what draws the tokens of a reply to r, which was checked.
func (d *Sampler) Begin(r *Request) (*ReplySampler, error) {
	follows, err := d.forms.Follow(r)
	if err != nil {
		return nil, err
	}
	of := r.shape()
	if d.prepared[of] == nil {
		f, err := prepare(d.exec, of.graph(d.vocabulary, nil))
		if err != nil {
			return nil, err
		}
		d.prepared[of] = f
	}
	s := &r.Sampling
	n := &ReplySampler{of: of, fn: d.prepared[of], seed: r.Seed, likeliest: r.Likeliest, follows: follows, in: map[string]*tensor.Tensor{}}
	one := func(name string, x, otherwise float32) {
		if x == 0 {
			x = otherwise
		}
		n.in[name] = tensor.Must(tensor.From(tensor.Shape{1}, []float32{x}))
	}
	one("repeat", s.Repeat, 1)
	one("presence", s.Presence, 0)
	one("frequency", s.Frequency, 0)
	one("temperature", s.Temperature, 1)
	one("p", s.TopP, 1)
	one("min", s.MinP, 0)
	k := int64(s.TopK)
	if k == 0 {
		k = int64(d.vocabulary)
	}
	n.in["k"] = tensor.Must(tensor.From(tensor.Shape{1}, []int64{k}))
	all := func() *tensor.Tensor { return tensor.Must(tensor.New(tensor.Float32, tensor.Shape{d.vocabulary})) }
	if of.penalties {
		n.in["prompt"], n.in["reply"] = all(), all()
		prompt := len(r.Prompt) - r.Made
		for i, id := range r.Prompt {
			tensor.Of[float32](n.in[[]string{"prompt", "reply"}[min(i/prompt, 1)]])[id]++
		}
	}
	if of.bias {
		n.in["bias"] = all()
		for id, by := range s.Bias { // each its own
			tensor.Of[float32](n.in["bias"])[id] = by
		}
	}
	if of.form {
		n.in["mask"] = tensor.Must(tensor.New(tensor.Bool, tensor.Shape{d.vocabulary}))
	}
	return n, nil
}

// Draw draws the token at a place of the sequence from the logits of the place before, and counts it. Its reason is Stop if the reply ends
// with it, and else empty.
func (n *ReplySampler) Draw(ctx context.Context, logits *tensor.Tensor, place int) (Token, error) {
	key := Key(n.seed, place)
	n.in["key"] = tensor.Must(tensor.From(tensor.Shape{2}, key[:]))
	var err error
	if n.in["logits"], err = logits.Part(0, tensor.Float32, tensor.Shape{logits.Len()}); err != nil {
		return Token{}, err
	}
	if n.of.form {
		n.follows.mask(tensor.Of[uint8](n.in["mask"]))
	}
	out, err := n.fn.call(ctx, n.in)
	if err != nil {
		return Token{}, err
	}
	t := Token{ID: int32(tensor.Of[int64](out.Find("token"))[0])}
	if t.ID < 0 {
		return Token{}, errors.New("no token could be drawn")
	}
	over, err := n.follows.Take(t.ID)
	if err != nil {
		return Token{}, err
	}
	if over {
		t.Reason = Stop
	}
	if n.of.penalties {
		tensor.Of[float32](n.in["reply"])[t.ID]++
	}
	if n.of.logProbs {
		t.LogProb = tensor.Of[float32](out.Find("log_prob"))[0]
		ids, logProbs := tensor.Of[int64](out.Find("likeliest")), tensor.Of[float32](out.Find("log_probs"))
		for i := range min(n.likeliest, len(ids)) {
			t.Likeliest = append(t.Likeliest, Candidate{int32(ids[i]), logProbs[i]})
		}
	}
	return t, nil
}
