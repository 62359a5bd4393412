package lm_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/internal/testkit/jsonvalid"
	"github.com/tally-network/tally/internal/testkit/lmtest"
	"github.com/tally-network/tally/model/grammar"
	"github.com/tally-network/tally/model/grammar/jsonschema"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/model/lm/family"
)

func form(t testing.TB, schema string) *grammar.Automaton {
	t.Helper()
	a, err := jsonschema.Compile([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func tiny(t testing.TB) *lm.Model {
	t.Helper()
	m, err := lm.Open("testdata/llama")
	if err != nil {
		t.Fatal(err)
	}
	return lmtest.Bind(m)
}

// logits of a wild model: among them what is no number, infinities and ties.
func wild(r *rand.Rand, n int) *tensor.Tensor {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(math.Round(8*r.NormFloat64()) / 4)
		if r.IntN(6) == 0 {
			x[i] = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), -math.MaxFloat32, math.MaxFloat32}[r.IntN(5)]
		}
	}
	return tensor.Must(tensor.From(tensor.Shape{n}, x))
}

// samplings of all kinds.
func anySampling(r *rand.Rand) lm.Sampling {
	s := lm.Sampling{Temperature: float32(r.IntN(3)) * 0.6, TopK: r.IntN(3) * 5, TopP: float32(r.IntN(4)) / 3, MinP: float32(r.IntN(2)) / 20, Repeat: 1 + float32(r.IntN(2))/2, Frequency: float32(r.IntN(2))}
	if r.IntN(3) == 0 {
		s.Bias = map[int32]float32{r.Int32N(48): 5, r.Int32N(48): -100}
	}
	return s
}

// A draw by masks is the one that the graph defines which gathers tables, on every executor; and the state after it is the same.
func TestDrawsByMasksAreThoseByTables(t *testing.T) {
	m := tiny(t)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 40 {
		q := &lm.Request{Prompt: []int32{1, 2, r.Int32N(48)}, MaxTokens: 9, Ends: []int32{7, 0}[:r.IntN(3)], Seed: r.Uint64(), Sampling: anySampling(r), Form: form(t, lmtest.Schemas[i%len(lmtest.Schemas)]), Likeliest: r.IntN(2)}
		var e engine.Executor = engine.Reference{}
		if i%4 > 0 {
			e = cpu.New(1)
		}
		fast, err := m.NewSampler(cpu.New(2)).Begin(q)
		if err != nil {
			t.Fatal(err)
		}
		defined, err := lm.BeginByTables(m, e, q)
		if err != nil {
			t.Fatal(err)
		}
		for place := 3; place < 12; place++ {
			logits := wild(r, 48)
			got, err := fast.Draw(t.Context(), logits, place)
			if err != nil {
				t.Fatalf("request %d, place %d: %v", i, place, err)
			}
			want, err := defined.Draw(t.Context(), logits, place)
			if err != nil {
				t.Fatal(err)
			}
			if got.ID != want.ID || math.Float32bits(got.LogProb) != math.Float32bits(want.LogProb) || got.Reason != want.Reason {
				t.Fatalf("request %d, place %d: %+v by masks, %+v by tables", i, place, got, want)
			}
			if got.Reason != "" {
				break
			}
		}
	}
}

// Whatever a model says, its replies have their form; it ends where the form does.
func TestRepliesHaveTheirForm(t *testing.T) {
	m := tiny(t)
	r := rand.New(rand.NewPCG(3, 4))
	d := m.NewSampler(cpu.New(1))
	whole, ended := 0, 0
	for i := range 200 {
		schema := lmtest.Schemas[i%len(lmtest.Schemas)]
		q := &lm.Request{Prompt: []int32{5}, MaxTokens: 60, Ends: []int32{0, 40}[:r.IntN(3)], Seed: r.Uint64(), Sampling: anySampling(r), Form: form(t, schema)}
		if err := q.Check(m); err != nil {
			t.Fatal(err)
		}
		n, err := d.Begin(q)
		if err != nil {
			t.Fatal(err)
		}
		var reply []int32
		for {
			tok, err := n.Draw(t.Context(), wild(r, 48), 1+len(reply))
			if err != nil {
				t.Fatal(err)
			}
			reply = append(reply, tok.ID)
			if tok.Reason == lm.Stop {
				break
			}
			if len(reply) == 60 {
				reply = nil
				break
			}
		}
		if reply == nil {
			continue
		}
		whole++
		if slices.Contains(q.Ends, reply[len(reply)-1]) {
			ended++
			reply = reply[:len(reply)-1]
		}
		if err := jsonvalid.Check(schema, lmtest.Text(reply)); err != nil {
			t.Fatalf("%s: %s: %v", schema, lmtest.Text(reply), err)
		}
	}
	if whole < 80 || ended == 0 || ended == whole {
		t.Errorf("%d replies are whole, %d of them ended by a token", whole, ended)
	}
}

// A reply that was begun goes on in its form, and one that has left it does not.
func TestFormsOfRepliesThatGoOn(t *testing.T) {
	m := tiny(t)
	words := lmtest.Words()
	id := func(text string) int32 {
		for i := range int32(48) {
			if string(words.Text(i)) == text {
				return i
			}
		}
		t.Fatalf("no token is %q", text)
		return 0
	}
	q := lm.Request{Prompt: []int32{5, id(`{"`), id("a"), id(`": `)}, Made: 3, MaxTokens: 5, Form: form(t, lmtest.Schemas[0])}
	if err := q.Check(m); err != nil {
		t.Fatal(err)
	}
	n, err := m.NewSampler(cpu.New(1)).Begin(&q)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := n.Draw(t.Context(), tensor.Must(tensor.New(tensor.Float32, tensor.Shape{48})), 4)
	if err != nil || !strings.Contains("0123456789-", string(words.Text(tok.ID)[0])) {
		t.Errorf("%+v, %v: %q", tok, err, words.Text(tok.ID))
	}
	for says, change := range map[string]func(q *lm.Request){
		"was made already":             func(q *lm.Request) { q.Prompt = []int32{5, id("]")}; q.Made = 1 },
		"does not go on with or after": func(q *lm.Request) { q.Prompt = []int32{5, id("null")}; q.Made = 1; q.Form = form(t, `{"const":null}`) },
		"cannot write this form":       func(q *lm.Request) { q.Form = form(t, `{"const":"é"}`) },
		"token 2 of the reply, 0, was": func(q *lm.Request) { q.Prompt = []int32{5, id("{"), id(`"`), 0}; q.Ends = []int32{0} },
		"of the empty text alone":      func(q *lm.Request) { b := grammar.NewBuilder(); q.Form, _ = b.Build(b.End()); q.Made = 0 },
	} {
		bad := q
		change(&bad)
		if err := bad.Check(m); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	plain, err := lm.Open("testdata/llama")
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Check(plain); err == nil || !strings.Contains(err.Error(), "is not known") {
		t.Errorf("%v", err)
	}
}

// A form is part of what is asked.
func TestFormsAreOfTheRequest(t *testing.T) {
	q := lm.Request{Prompt: []int32{1}, MaxTokens: 1, Form: form(t, lmtest.Schemas[0])}
	var back lm.Request
	if err := canon.Unmarshal(canon.Marshal(&q), &back); err != nil || back.ID() != q.ID() || back.Form.ID() != q.Form.ID() {
		t.Fatalf("%v", err)
	}
	other, none := q, q
	other.Form, none.Form = form(t, lmtest.Schemas[1]), nil
	if q.ID() == other.ID() || q.ID() == none.ID() || none.ID() == other.ID() {
		t.Error("requests of different forms have one identity")
	}
}

// What a form costs beside a draw, with a vocabulary as models have them.
func BenchmarkForm(b *testing.B) {
	const tokens = 49152
	r := rand.New(rand.NewPCG(5, 6))
	words := grammar.NewVocabulary(tokens, func(id int32) []byte {
		if id < 256 {
			return []byte{byte(id)}
		}
		text := []byte(" "[:r.IntN(2)])
		for range 1 + r.IntN(9) {
			text = append(text, "etaoinshrdlucmfw{}\":,0123456789"[r.IntN(31)])
		}
		return text
	})
	m := &lm.Model{Config: family.Config{Vocabulary: tokens, Context: 1 << 20}}
	m.SetForms(lm.NewForms(func() *grammar.Vocabulary { return words }))
	logits := make([]float32, tokens)
	for i := range logits {
		logits[i] = float32(3 * r.NormFloat64())
	}
	x := tensor.Must(tensor.From(tensor.Shape{tokens}, logits))
	any := form(b, `{"type":"object"}`)
	for _, c := range []struct {
		name string
		form *grammar.Automaton
		s    lm.Sampling
	}{
		{"free/greedy", nil, lm.Sampling{}}, {"bound/greedy", any, lm.Sampling{}},
		{"free/filtered", nil, lm.Sampling{Temperature: 1, TopP: 0.9}}, {"bound/filtered", any, lm.Sampling{Temperature: 1, TopP: 0.9}},
	} {
		b.Run(c.name, func(b *testing.B) {
			d := m.NewSampler(cpu.New(2))
			q := &lm.Request{Prompt: []int32{1}, MaxTokens: 1 << 20, Form: c.form, Sampling: c.s}
			n, err := d.Begin(q)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for place := 1; b.Loop(); place++ {
				tok, err := n.Draw(b.Context(), x, place)
				if err != nil {
					b.Fatal(err)
				}
				if tok.Reason != "" {
					b.StopTimer()
					if n, err = d.Begin(q); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
			}
		})
	}
}
