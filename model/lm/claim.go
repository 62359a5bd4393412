package lm

import (
	"maps"
	"math"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/merkle"
	"github.com/tally-network/tally/model/grammar"
)

// Limits of a request that is sent.
const (
	MaxSent = 1 << 22 // tokens of a prompt
	MaxEnds = 64
	MaxBias = 1024
)

// Code walks the fields of r that a reply follows from, and how likely tokens are to be told.
func (r *Request) Code(w *canon.Codec) {
	CodeTokens(w, &r.Prompt, MaxSent)
	w.Int(&r.Made, MaxSent)
	w.Int(&r.MaxTokens, MaxSent)
	CodeTokens(w, &r.Ends, MaxEnds)
	r.Sampling.code(w)
	w.U64(&r.Seed)
	w.Int(&r.Likeliest, MaxLikeliest)
	r.codeForm(w)
}

func (r *Request) codeForm(w *canon.Codec) {
	bound := r.Form != nil
	if w.Bool(&bound); !bound {
		return
	}
	if r.Form == nil {
		r.Form = &grammar.Automaton{}
	}
	r.Form.Code(w)
}

func (s *Sampling) code(w *canon.Codec) {
	for _, x := range []*float32{&s.Temperature, &s.TopP, &s.MinP, &s.Repeat, &s.Presence, &s.Frequency} {
		codeFloat(w, x)
	}
	w.Int(&s.TopK, math.MaxInt32)
	all := s.biases()
	canon.Seq(w, &all, MaxBias, 2, func(w *canon.Codec, e *bias) {
		codeToken(w, &e.id)
		codeFloat(w, &e.by)
	})
	if !w.Reading() || len(all) == 0 {
		return
	}
	s.Bias = make(map[int32]float32, len(all))
	for i, e := range all {
		if i > 0 && e.id <= all[i-1].id {
			w.Fail("a bias is out of order")
			return
		}
		s.Bias[e.id] = e.by
	}
}

// bias is what is added to the logit of a token.
type bias struct {
	id int32
	by float32
}

// biases returns the biases of s by their tokens, in order.
func (s *Sampling) biases() []bias {
	all := make([]bias, 0, len(s.Bias))
	for id, by := range s.Bias { // sorted below
		all = append(all, bias{id, by})
	}
	slices.SortFunc(all, func(a, b bias) int { return int(a.id) - int(b.id) })
	return all
}

// codeFloat codes the bits of x. Those of −0 and NaN stay as they are.
func codeFloat(w *canon.Codec, x *float32) {
	bits := uint64(math.Float32bits(*x))
	w.U64(&bits)
	if w.Reading() {
		if bits > math.MaxUint32 {
			w.Fail("a number of more than 32 bits")
		}
		*x = math.Float32frombits(uint32(bits))
	}
}

func codeToken(w *canon.Codec, id *int32) {
	n := int(*id)
	if w.Int(&n, math.MaxInt32); w.Reading() {
		*id = int32(n)
	}
}

// CodeTokens codes at most so many tokens.
func CodeTokens(w *canon.Codec, tokens *[]int32, most int) { canon.Seq(w, tokens, most, 1, codeToken) }

// PagesRoot returns the root of what the sequence keeps. A leaf is the root of Chunk tokens: over the roots of the states of layers, keys and
// values as [Model.Column] gives them.
func (q *Sequence) PagesRoot(threads int) (canon.Hash, error) {
	q.pages = q.pages[:min(len(q.pages), q.past/Chunk)]
	for (len(q.pages)+1)*Chunk <= q.past {
		page, err := q.page(len(q.pages), Chunk, threads)
		if err != nil {
			return canon.Hash{}, err
		}
		q.pages = append(q.pages, page)
	}
	leaves := q.pages
	if rest := q.past % Chunk; rest > 0 {
		page, err := q.page(len(q.pages), rest, threads)
		if err != nil {
			return canon.Hash{}, err
		}
		leaves = append(slices.Clip(leaves), page)
	}
	return canon.Root(leaves), nil
}

// page returns the root of n tokens of page i, which is filled up with zeros.
func (q *Sequence) page(i, n, threads int) (canon.Hash, error) {
	parts := make([]*tensor.Tensor, len(q.kept))
	for at, x := range q.kept {
		var err error
		if parts[at], err = filledUp(x, i*Chunk, n); err != nil {
			return canon.Hash{}, err
		}
	}
	roots := merkle.Roots(parts, threads)
	layers := make([]canon.Hash, len(roots)/2)
	for l := range layers {
		layers[l] = rootByName(map[string]canon.Hash{"keys": roots[2*l], "values": roots[2*l+1]})
	}
	return canon.Root(layers), nil
}

// filledUp returns n rows of x, from one on, and zeros after them, Chunk in all. Where x has that many, the zeros are written into it: nothing else uses
// those rows.
func filledUp(x *tensor.Tensor, from, n int) (*tensor.Tensor, error) {
	row := x.Shape[1:].Elements() * x.Type.Size()
	if from+Chunk <= x.Shape[0] {
		clear(x.Bytes()[(from+n)*row : (from+Chunk)*row])
		return rowsOf(x, from, Chunk)
	}
	s := x.Shape.Clone()
	s[0] = Chunk
	y, err := tensor.New(x.Type, s)
	if err == nil {
		copy(y.Bytes(), x.Bytes()[from*row:(from+n)*row])
	}
	return y, err
}

// stateOf returns the state of tensors by their names.
func stateOf(named map[string]*tensor.Tensor) *graph.State {
	s := &graph.State{}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		t := named[name]
		s.Slots = append(s.Slots, graph.Slot{Name: name, Type: t.Type, Shape: t.Shape})
		s.Tensors = append(s.Tensors, t)
	}
	return s
}

// WeightRoots returns the roots of all weights as they are stored, by their names.
func (m *Model) WeightRoots(threads int) map[string]canon.Hash {
	return m.rootsOf(slices.Sorted(maps.Keys(m.weights)), threads)
}

// AdapterRoots returns those of WeightRoots that the model's base does not have.
func (m *Model) AdapterRoots(threads int) map[string]canon.Hash {
	var names []string
	for name := range m.weights { // sorted below
		if _, is := m.base().weights[name]; !is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return m.rootsOf(names, threads)
}

func (m *Model) rootsOf(names []string, threads int) map[string]canon.Hash {
	stored := make([]*tensor.Tensor, len(names))
	for i, name := range names {
		stored[i] = m.weights[name].stored
	}
	roots := map[string]canon.Hash{}
	for i, root := range merkle.Roots(stored, threads) {
		roots[names[i]] = root
	}
	return roots
}

// WeightsRoot returns the root of the state of all weights, by their roots. The name of one that is in blocks ends with their type.
func (m *Model) WeightsRoot(roots map[string]canon.Hash) canon.Hash {
	named := map[string]canon.Hash{}
	for name, root := range roots { // each its own
		if w := m.weights[name]; w.stored.Type == tensor.Uint8 {
			name += "/" + w.of.String()
		}
		named[name] = root
	}
	return rootByName(named)
}

// ColumnRoot returns the root of [Model.ColumnWeights], by the roots of all weights.
func (m *Model) ColumnRoot(column int, roots map[string]canon.Hash) canon.Hash {
	named := map[string]canon.Hash{}
	for weight, root := range roots { // each its own
		if name, ok := m.ofColumn(column, weight); ok {
			named[name] = root
		}
	}
	return rootByName(named)
}

// rootByName returns the root of a state whose tensors have those roots.
func rootByName(named map[string]canon.Hash) canon.Hash {
	var entries []canon.Entry
	for _, name := range slices.Sorted(maps.Keys(named)) {
		entries = append(entries, canon.Entry{Key: name, Value: named[name]})
	}
	k, err := canon.NewKeyed(entries)
	if err != nil {
		panic(err) // names are in order, and short
	}
	return k.Root()
}
