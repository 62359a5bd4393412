package check_test

import (
	"fmt"
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
	"github.com/tally-network/tally/model/check"
	"github.com/tally-network/tally/model/grammar/jsonschema"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/model/lm/family"
	"github.com/tally-network/tally/model/replies"
)

func open(t testing.TB, name string) *lm.Model {
	t.Helper()
	m, err := lm.Open("../lm/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// random draws a request that a model of 48 tokens and a context of 64 takes.
func random(r *rand.Rand) *lm.Request {
	q := &lm.Request{MaxTokens: 1 + r.IntN(50), Ends: []int32{7}, Seed: r.Uint64(), Pages: true}
	for range 1 + r.IntN(20) {
		q.Prompt = append(q.Prompt, r.Int32N(48))
	}
	q.Made = r.IntN(len(q.Prompt))
	if r.IntN(4) > 0 {
		q.Sampling = lm.Sampling{Temperature: r.Float32() * 2, TopK: r.IntN(3) * 20, TopP: r.Float32(), Repeat: 1 + r.Float32(), Frequency: r.Float32()}
	}
	return q
}

// made is what a server replies.
func made(t testing.TB, s *replies.Server, q *lm.Request) (tokens []int32, last lm.Token) {
	t.Helper()
	for tok, err := range s.Reply(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		tokens, last = append(tokens, tok.ID), tok
	}
	return tokens, last
}

// Logits of an odd vocabulary begin where no part of a tensor can.
func TestOddVocabularies(t *testing.T) {
	c, err := family.Parse([]byte(`{"model_type": "llama", "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
		"num_key_value_heads": 1, "vocab_size": 49, "max_position_embeddings": 300, "rms_norm_eps": 1e-5, "tie_word_embeddings": true}`))
	if err != nil {
		t.Fatal(err)
	}
	chance := rand.New(rand.NewPCG(7, 7))
	m, err := lm.Make(c, func(_ string, s tensor.Shape) *tensor.Tensor {
		x := make([]float32, s.Elements())
		for i := range x {
			x[i] = chance.Float32() - 0.5
		}
		return tensor.Must(tensor.From(s, x))
	})
	if err != nil {
		t.Fatal(err)
	}
	s := replies.Start(m, cpu.New(1), replies.Options{})
	defer s.Close()
	q := &lm.Request{Prompt: []int32{3, 4}, MaxTokens: 200, Seed: 3, Sampling: lm.Sampling{Temperature: 1}, Pages: true}
	reply, last := made(t, s, q)
	if v, err := check.New(m, cpu.New(1)).Check(t.Context(), q, reply); err != nil || v.Wrong >= 0 || v.Pages != last.Pages {
		t.Errorf("%+v, %v", v, err)
	}
}

// A reply is right as it was made, with the same pages; with any token changed, that is the first that is wrong.
func TestRepliesReExecuted(t *testing.T) {
	for _, family := range []string{"llama", "gemma2", "gpt2"} {
		m := open(t, family)
		s := replies.Start(m, cpu.New(2), replies.Options{})
		defer s.Close()
		fast, slow := check.New(m, cpu.New(1)), check.New(m, engine.Reference{})
		r := rand.New(rand.NewPCG(1, uint64(len(family))))
		for i := range 15 {
			q := random(r)
			tokens, last := made(t, s, q)
			checkers := []*check.Checker{fast}
			if i == 0 {
				checkers = append(checkers, slow)
			}
			for _, c := range checkers {
				v, err := c.Check(t.Context(), q, tokens)
				if err != nil || v.Wrong != -1 || v.Pages != last.Pages {
					t.Fatalf("%s, request %d: %+v, %v; its pages are %s", family, i, v, err, last.Pages)
				}
				at := r.IntN(len(tokens))
				bad := slices.Clone(tokens)
				bad[at] = (bad[at] + 1 + r.Int32N(47)) % 48
				if v, err := c.Check(t.Context(), q, bad); err != nil || v.Wrong != at || v.Token != tokens[at] {
					t.Fatalf("%s, request %d, wrong at %d: %+v, %v", family, i, at, v, err)
				}
			}
		}
	}
}

// formed draws a request whose reply has a form.
func formed(t testing.TB, r *rand.Rand) (q *lm.Request, schema string) {
	t.Helper()
	q = random(r)
	q.Made, q.MaxTokens = 0, 40
	schema = lmtest.Schemas[r.IntN(len(lmtest.Schemas))]
	var err error
	if q.Form, err = jsonschema.Compile([]byte(schema)); err != nil {
		t.Fatal(err)
	}
	if r.IntN(2) == 0 {
		q.Ends = []int32{0}
	}
	return q, schema
}

// Replies that are bound to a form have it, end with it, are re-executed, and go on elsewhere. A token that another form would allow is wrong.
func TestFormsReExecuted(t *testing.T) {
	m := lmtest.Bind(open(t, "llama"))
	s := replies.Start(m, cpu.New(2), replies.Options{})
	defer s.Close()
	c := check.New(m, cpu.New(1))
	r := rand.New(rand.NewPCG(4, 4))
	whole := 0
	for i := range 24 {
		q, schema := formed(t, r)
		tokens, last := made(t, s, q)
		if v, err := c.Check(t.Context(), q, tokens); err != nil || v.Wrong != -1 || v.Pages != last.Pages {
			t.Fatalf("request %d: %+v, %v", i, v, err)
		}
		if last.Reason == lm.Stop {
			whole++
			text := tokens
			if slices.Contains(q.Ends, last.ID) {
				text = tokens[:len(tokens)-1]
			}
			if err := jsonvalid.Check(schema, lmtest.Text(text)); err != nil {
				t.Fatalf("%s: %s: %v", schema, lmtest.Text(text), err)
			}
			if more := append(slices.Clone(tokens), tokens[0]); len(more) <= q.MaxTokens {
				if v, err := c.Check(t.Context(), q, more); err != nil || v.Wrong != len(tokens) {
					t.Fatalf("request %d, after its end: %+v, %v", i, v, err)
				}
			}
		}
		at := r.IntN(len(tokens))
		bad := slices.Clone(tokens)
		bad[at] = (bad[at] + 1 + r.Int32N(47)) % 48
		if v, err := c.Check(t.Context(), q, bad); err != nil || v.Wrong != at || v.Token != tokens[at] {
			t.Fatalf("request %d, wrong at %d: %+v, %v", i, at, v, err)
		}
		free := *q
		free.Form = nil
		if v, err := c.Check(t.Context(), &free, tokens); err != nil || v.Wrong < 0 && len(tokens) > 4 {
			t.Fatalf("request %d is right without its form: %+v, %v", i, v, err)
		}
		if n := r.IntN(len(tokens)); n > 0 {
			rest := *q
			rest.Prompt, rest.Made, rest.MaxTokens = slices.Concat(q.Prompt, tokens[:n]), n, q.MaxTokens-n
			if got, end := made(t, s, &rest); !slices.Equal(got, tokens[n:]) || end.Reason != last.Reason {
				t.Fatalf("request %d after %d tokens: %v, want %v", i, n, got, tokens[n:])
			}
		}
	}
	if whole < 6 {
		t.Errorf("%d of 24 replies are whole", whole)
	}
}

// A reply that was begun elsewhere goes on as if it had not been.
func TestRepliesGoOnElsewhere(t *testing.T) {
	m := open(t, "llama")
	s := replies.Start(m, cpu.New(1), replies.Options{})
	defer s.Close()
	r := rand.New(rand.NewPCG(2, 2))
	for i := range 40 {
		q := random(r)
		whole, _ := made(t, s, q)
		n := r.IntN(len(whole))
		if n == 0 {
			continue
		}
		rest := *q
		rest.Prompt, rest.Made, rest.MaxTokens = slices.Concat(q.Prompt, whole[:n]), q.Made+n, q.MaxTokens-n
		if got, _ := made(t, s, &rest); !slices.Equal(got, whole[n:]) {
			t.Fatalf("request %d after %d tokens: %v, want %v", i, n, got, whole[n:])
		}
	}
}

func TestWhatIsNoReply(t *testing.T) {
	c := check.New(open(t, "llama"), cpu.New(1))
	q := &lm.Request{Prompt: []int32{1, 2, 3}, MaxTokens: 4, Ends: []int32{7}}
	for says, reply := range map[string][]int32{"0 tokens": nil, "5 tokens": {1, 1, 1, 1, 1}} {
		if _, err := c.Check(t.Context(), q, reply); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v, want %q", reply, err, says)
		}
	}
	if _, err := c.Check(t.Context(), &lm.Request{MaxTokens: 1}, []int32{1}); err == nil {
		t.Error("a request without a prompt is checked")
	}
}

// What comes after an end, and what is no token, is wrong there.
func TestWhatCannotBeAToken(t *testing.T) {
	m := open(t, "llama")
	s := replies.Start(m, cpu.New(1), replies.Options{})
	defer s.Close()
	c := check.New(m, cpu.New(1))
	q := &lm.Request{Prompt: []int32{1, 2, 3}, MaxTokens: 4}
	tokens, _ := made(t, s, q)
	for _, id := range []int32{-1, 48, 1 << 30} {
		for at := range tokens {
			bad := slices.Clone(tokens)
			bad[at] = id
			if v, err := c.Check(t.Context(), q, bad); err != nil || v.Wrong != at {
				t.Errorf("token %d at %d: %+v, %v", id, at, v, err)
			}
		}
	}
	q.Ends = []int32{tokens[1]}
	if v, err := c.Check(t.Context(), q, tokens); err != nil || v.Wrong != slices.Index(tokens, tokens[1])+1 {
		t.Errorf("of tokens after the end: %+v, %v", v, err)
	}
}

// Requests read again as they were written, have an identity for all that a reply follows from, and none for who asks.
func TestRequestsHaveAnIdentity(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	seen := map[canon.Hash]string{}
	for range 100 {
		q := random(r)
		if r.IntN(2) == 0 {
			q.Sampling.Bias = map[int32]float32{r.Int32N(48): -1, r.Int32N(48): r.Float32()}
		}
		var back lm.Request
		if err := canon.Unmarshal(canon.Marshal(q), &back); err != nil {
			t.Fatal(err)
		}
		if back.ID() != q.ID() {
			t.Fatalf("%+v reads again as %+v", q, back)
		}
		for name, change := range map[string]func(*lm.Request){
			"nothing": func(*lm.Request) {}, "prompt": func(x *lm.Request) { x.Prompt = append(slices.Clone(x.Prompt), 1) }, "made": func(x *lm.Request) { x.Made++ },
			"seed": func(x *lm.Request) { x.Seed++ }, "ends": func(x *lm.Request) { x.Ends = nil }, "temperature": func(x *lm.Request) { x.Sampling.Temperature += 3 },
			"bias": func(x *lm.Request) { x.Sampling.Bias = map[int32]float32{1: 9} },
		} {
			x := *q
			change(&x)
			told := fmt.Sprintf("%s of %x", name, canon.Marshal(q))
			if other, ok := seen[x.ID()]; ok {
				t.Fatalf("%s and %s have one identity", told, other)
			}
			seen[x.ID()] = told
		}
		x := *q
		x.Owner, x.Pages = "somebody else", false
		if x.ID() != q.ID() {
			t.Fatal("who asks changes what is asked")
		}
	}
}
