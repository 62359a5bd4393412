package lm

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/quant"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/model/lm/family"
)

// headed returns a model of one layer whose logits are often equal.
func headed(r *rand.Rand, vocabulary int) *Model {
	c, err := family.Parse(fmt.Appendf(nil, `{"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 8, "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 8,
		"vocab_size": %d, "max_position_embeddings": 1000, "rms_norm_eps": 1e-5, "tie_word_embeddings": true}`, vocabulary))
	if err != nil {
		panic(err)
	}
	m, err := Make(c, func(name string, shape tensor.Shape) *tensor.Tensor {
		x := tensor.Must(tensor.New(tensor.Float32, shape))
		for i := range x.Len() {
			x.Set(i, tensor.F32(float32(r.IntN(5)-2)))
		}
		if name == "model.norm.weight" {
			for i := range x.Len() {
				x.Set(i, tensor.F32(1))
			}
		}
		return x
	})
	if err != nil {
		panic(err)
	}
	return m
}

// placeOf returns a place.
func placeOf(chunk, judged, prompt, tokens int) *graph.State {
	return stateOf(map[string]*tensor.Tensor{
		"first": vector(int64(Chunk * chunk)), "judged": vector(int64(judged)), "prompt": vector(int64(prompt)), "read": vector(int64(tokens - 1)),
	})
}

// pagesUpTo returns the pages of tokens that the last column of a chunk reads.
func pagesUpTo(tokens []int32, chunk int) (pages []*graph.State) {
	for page := range slices.Chunk(tokens, Chunk) {
		pages = append(pages, TokenPage(page))
	}
	return append(pages[:chunk+1:chunk+1], pages[min(chunk+1, len(pages)-1)])
}

// columnRunner prepares the programs of columns.
type columnRunner struct {
	t       testing.TB
	m       *Model
	e       engine.Executor
	runners map[[2]int]engine.Runner
}

func (c *columnRunner) run(chunk, column int, states ...*graph.State) *graph.State {
	c.t.Helper()
	at := [2]int{chunk, column}
	if c.runners[at] == nil {
		p, err := c.m.Column(chunk, column)
		if err != nil {
			c.t.Fatal(err)
		}
		if c.runners[at], err = c.e.Prepare(p); err != nil {
			c.t.Fatal(err)
		}
	}
	states = append([]*graph.State{c.m.ColumnWeights(column)}, states...)
	out, err := c.runners[at].Run(context.Background(), graph.Inputs{States: states}, nil)
	if err != nil {
		c.t.Fatalf("chunk %d, column %d: %v", chunk, column, err)
	}
	return out
}

// randomRequest returns a request with any of the settings that there are.
func randomRequest(r *rand.Rand, vocabulary, prompt int) *Request {
	q := &Request{Made: r.IntN(prompt), MaxTokens: 1000, Seed: r.Uint64()}
	if r.IntN(2) == 0 {
		q.Made = 0
	}
	for range prompt {
		q.Prompt = append(q.Prompt, int32(r.IntN(vocabulary)/(1+r.IntN(100))))
	}
	for range r.IntN(MaxEnds) {
		q.Ends = append(q.Ends, int32(r.IntN(vocabulary)))
	}
	s := &q.Sampling
	any := func(to *float32, some ...float32) { *to = some[r.IntN(len(some))] }
	any(&s.Temperature, 0, 0.5, 1, 3)
	any(&s.TopP, 0, 0, 1, 0.3, 0.9, 1e-45)
	any(&s.MinP, 0, 0, 0.05, 1)
	any(&s.Repeat, 0, 0, 1, 1.3, 0.5)
	any(&s.Presence, 0, 0, 0.5, -1)
	any(&s.Frequency, 0, 0, 0.5, -1)
	s.TopK = []int{0, 0, 1, 40, Candidates, 1 << 30}[r.IntN(6)]
	for range []int{0, 0, 1, 30}[r.IntN(4)] {
		if s.Bias == nil {
			s.Bias = map[int32]float32{}
		}
		s.Bias[int32(r.IntN(vocabulary))] = float32(r.IntN(9) - 4)
	}
	return q
}

// The last column draws what the sampler draws, whatever the request, and finds each token that breaks the rules.
func TestLastColumnDrawsAsSamplersDo(t *testing.T) {
	const vocabulary = 1500
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 4))
		m := headed(r, vocabulary)
		c := &columnRunner{t, m, cpu.New(2), map[[2]int]engine.Runner{}}
		sampler, stages := m.NewSampler(c.e), m.Stages(c.e)
		for i := range 60 {
			q := randomRequest(r, vocabulary, 1+r.IntN(3*Chunk-5))
			if err := q.Check(m); err != nil {
				t.Fatal(err)
			}
			draws, err := sampler.Begin(q)
			if err != nil {
				t.Fatal(err)
			}
			tokens := slices.Clone(q.Prompt)
			for range 3 {
				judged := len(tokens)
				chunk := (judged - 1) / Chunk
				x := tensor.Must(tensor.New(tensor.Float32, tensor.Shape{1, Chunk, m.Width}))
				for j := range x.Len() {
					x.Set(j, tensor.F32(float32(r.IntN(3)-1)))
				}
				row := tensor.Must(rowsOf(tensor.Must(x.Part(0, x.Type, tensor.Shape{Chunk, m.Width})), (judged-1)%Chunk, 1))
				f, err := stages.head.at(c.e, stageSize{rows: 1})
				if err != nil {
					t.Fatal(err)
				}
				end, err := f.call(t.Context(), map[string]*tensor.Tensor{"x": tensor.Must(row.Part(0, row.Type, tensor.Shape{1, 1, m.Width}))})
				if err != nil {
					t.Fatal(err)
				}
				drawn, err := draws.Draw(t.Context(), end.Find("logits"), judged)
				if err != nil {
					t.Fatal(err)
				}
				over := int64(0)
				if judged > len(q.Prompt) && slices.Contains(q.Ends, tokens[judged-1]) {
					over = 1
				}
				tokens = append(tokens, drawn.ID)
				for j, id := range []int32{drawn.ID, (drawn.ID + 1) % vocabulary, []int32{-1, vocabulary, drawn.ID - vocabulary}[r.IntN(3)]} {
					given := append(slices.Clone(tokens[:judged]), id)
					for range r.IntN(2 * Chunk) { // what follows changes nothing
						given = append(given, int32(r.IntN(2*vocabulary)-vocabulary/2))
					}
					in := append([]*graph.State{placeOf(chunk, judged, len(q.Prompt), len(given)), q.State(), stateOf(map[string]*tensor.Tensor{"x": x})}, pagesUpTo(given, chunk)...)
					got := tensor.Of[int64](c.run(chunk, m.Columns()-1, in...).Find("wrong"))[0]
					if want := int64(min(j, 1)) + over; got != want {
						t.Fatalf("seed %d, request %d %+v, token %d at %d: wrong %d times, want %d", seed, i, q.Sampling, id, judged, got, want)
					}
				}
			}
		}
	}
}

// wide opens a model of testdata with room for so many tokens.
func wide(t *testing.T, dir string, context int) *Model {
	t.Helper()
	m, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !m.Of.Learned {
		m.Context = context
	}
	return m
}

// Columns give the keys, values and logits of stages, bit for bit, in every family, and of weights in blocks.
func TestColumnsEqualStages(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	models := map[string]*Model{}
	for _, dir := range folders(t) {
		models[filepath.Base(dir)] = wide(t, dir, 1000)
	}
	for name, of := range adapters { // each alone
		models[name] = adapted(t, models[of], name)
	}
	for _, of := range []quant.Type{quant.Q8_0, quant.Q4_K, quant.F16} {
		b := blocky(t, of)
		m, err := ReadGGUF(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		m.Context = 300
		models[of.String()] = m
	}
	for name, m := range models { // each alone
		t.Run(name, func(t *testing.T) {
			n := min(2*Chunk+1+r.IntN(Chunk-1), m.Context)
			tokens := make([]int32, n)
			for i := range tokens {
				tokens[i] = int32(r.IntN(m.Vocabulary))
			}
			c := &columnRunner{t, m, cpu.New(2), map[[2]int]engine.Runner{}}
			q, logits := readAtOnce(t, m, c.e, r, tokens)
			past := make([][]*graph.State, m.Layers) // keys and values by layer, of chunks before
			var chunks []canon.Hash
			for chunk := 0; chunk*Chunk < n; chunk++ {
				place := placeOf(chunk, 0, 1, n+1)
				x := c.run(chunk, 0, place, TokenPage(tokens[chunk*Chunk:]))
				rows := min(Chunk, n-chunk*Chunk)
				var layers []canon.Hash
				for i := range m.Layers {
					p := c.run(chunk, 2*i+1, place, x)
					for j, name := range []string{"keys", "values"} {
						want := make([]float32, Chunk*m.Shared*m.HeadSize)
						copy(want, tensor.Of[float32](tensor.Must(rowsOf(q.kept[2*i+j], chunk*Chunk, rows))))
						if !slices.EqualFunc(tensor.Of[float32](p.Find(name)), want, equal) {
							t.Fatalf("chunk %d, layer %d: other %s", chunk, i, name)
						}
					}
					x = c.run(chunk, 2*i+2, append([]*graph.State{place, x, p}, past[i]...)...)
					past[i] = append(past[i], p)
					layers = append(layers, rootOf(p))
				}
				chunks = append(chunks, canon.Root(layers))
				head, err := prepare(c.e, m.Stages(c.e).head.graph(stageSize{rows: Chunk}))
				if err != nil {
					t.Fatal(err)
				}
				end, err := head.call(t.Context(), map[string]*tensor.Tensor{"x": x.Find("x")})
				if err != nil {
					t.Fatal(err)
				}
				got := tensor.Of[float32](end.Find("logits"))[:rows*m.Vocabulary]
				if !slices.EqualFunc(got, logits[chunk*Chunk*m.Vocabulary:][:len(got)], equal) {
					t.Fatalf("chunk %d: other logits", chunk)
				}
			}
			if got, err := q.PagesRoot(2); err != nil || got != canon.Root(chunks) {
				t.Errorf("pages root %v, %v, want that over the columns' pages", got, err)
			}
		})
	}
}

// readAtOnce reads tokens by stages, so many at once as chance says.
func readAtOnce(t *testing.T, m *Model, e engine.Executor, r *rand.Rand, tokens []int32) (*Sequence, []float32) {
	q, s := &Sequence{}, m.Stages(e)
	var logits []float32
	for q.Len() < len(tokens) {
		part := tokens[q.Len():]
		part = part[:1+r.IntN(min(len(part), MaxRows))]
		out, err := s.Step(t.Context(), []Part{{Sequence: q, Tokens: part, Logits: len(part)}})
		if err != nil {
			t.Fatal(err)
		}
		logits = append(logits, tensor.Of[float32](out[0])...)
	}
	return q, logits
}

// Columns of one kind have one program: that is what saves their number.
func TestColumnKinds(t *testing.T) {
	for _, dir := range folders(t) {
		m := wide(t, dir, 1000)
		roots := map[string]canon.Hash{}
		for column := range m.Columns() {
			for chunk := range 3 {
				p, err := m.Column(chunk, column)
				if err != nil {
					t.Fatal(err)
				}
				kind, byChunk := m.ColumnKind(column)
				if byChunk {
					kind += fmt.Sprint(" of ", chunk)
				}
				root := p.Commit().Root()
				if other, ok := roots[kind]; ok && other != root {
					t.Errorf("%s: columns of kind %q have two programs", m.Family, kind)
				}
				roots[kind] = root
			}
		}
		if most := 1 + 3 + 2*(1+3); len(roots) > most {
			t.Errorf("%s: %d programs, want at most %d", m.Family, len(roots), most)
		}
	}
}

// A column of the last chunk of the longest sequence is a program, too: it joins more pages than a primitive takes.
func TestLongColumns(t *testing.T) {
	m := wide(t, "testdata/gemma2", 1<<15)
	for _, column := range []int{2, m.Columns() - 1} {
		p, err := m.Column(255, column)
		if err != nil {
			t.Fatal(err)
		}
		if p.Groups < 257 || len(p.SlotsRead()) < 256 {
			t.Errorf("column %d reads %d slots of %d states", column, len(p.SlotsRead()), p.Groups)
		}
	}
}

func BenchmarkColumn(b *testing.B) {
	m, err := Open("testdata/llama")
	if err != nil {
		b.Fatal(err)
	}
	for _, chunk := range []int{0, 63, 255} {
		for _, column := range []int{0, 1, 2, m.Columns() - 1} {
			b.Run(fmt.Sprintf("%d/%d", chunk, column), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					p, err := m.Column(chunk, column)
					if err != nil {
						b.Fatal(err)
					}
					_ = p.Commit().Root()
				}
			})
		}
	}
}
