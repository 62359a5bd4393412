package replies

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/internal/testkit/lmtest"
	"github.com/tally-network/tally/model/check"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/grammar"
	"github.com/tally-network/tally/model/grammar/jsonschema"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/model/lm/family"
)

// speculative are requests of all kinds: prompts that repeat themselves and begin alike, all samplings, and forms.
func speculative(t *testing.T, r *rand.Rand, m *lm.Model, n int) []*lm.Request {
	var forms []*grammar.Automaton
	for _, schema := range lmtest.Schemas {
		form, err := jsonschema.Compile([]byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		forms = append(forms, form)
	}
	all := requests(r, m, n)
	for i, q := range all {
		if period := 1 + r.IntN(5); i%2 == 0 {
			for at := period; at < len(q.Prompt); at++ {
				q.Prompt[at] = q.Prompt[at-period]
			}
		}
		if q.Pages = true; i%3 == 0 {
			q.Form, q.Ends = forms[r.IntN(len(forms))], []int32{1}
		}
		if i%4 == 1 {
			q.Sampling = lm.Sampling{} // the greatest: tiny models fall into periods
		}
		if i%5 == 1 {
			q.Sampling.Bias, q.Sampling.Presence, q.Sampling.MinP, q.Sampling.TopK = map[int32]float32{3: 2, 9: -1}, 0.5, 0.05, 20
		}
	}
	return all
}

// Replies are the same to the last bit, likelihoods and roots of pages among them, however tokens were drafted: by n-grams, by the model itself, by another
// that is nearly always wrong, with whatever is in the batch.
func TestSpeculationChangesNoReply(t *testing.T) {
	m, other := lmtest.Bind(open(t, "llama")), open(t, "mistral")
	r := rand.New(rand.NewPCG(3, 9))
	all := speculative(t, r, m, 24)
	plain := make([][]lm.Token, len(all))
	s := Start(m, cpu.New(2), Options{})
	for i, q := range all {
		var err error
		if plain[i], err = listen(s, t.Context(), q); err != nil {
			t.Fatal(err)
		}
		stages, sampler := m.Stages(cpu.New(1)), m.NewSampler(cpu.New(1))
		if i < 8 && !sameTokens(plain[i], alone(t, m, stages, sampler, q)) {
			t.Fatalf("request %d: a server without drafts says something else than the model alone", i)
		}
	}
	if st := s.Stats(); st.Drafted != 0 {
		t.Fatalf("%+v without speculation", st)
	}
	s.Close()
	for name, x := range map[string]Speculation{ // each alone
		"ngram": {Ngram: true, always: true}, "itself": {Model: m, always: true}, "both": {Ngram: true, Model: m, always: true}, "another": {Model: other, always: true},
		"adaptive": {Ngram: true, Model: m},
	} {
		for batch := 1; batch <= 8; batch++ {
			if name != "ngram" && name != "itself" && batch != 3 && batch != 8 {
				continue
			}
			o := Options{Sequences: batch, Speculative: x, Bytes: 1 << 24}
			if batch == 3 {
				o.Bytes, o.ahead = int64(3*m.Context)*int64(2*m.TokenBytes()), 3 // little memory, and slow listeners
			}
			s := Start(m, cpu.New(2), o)
			var wg sync.WaitGroup
			for i, q := range all {
				wg.Go(func() {
					got, err := listen(s, t.Context(), q)
					if err != nil || !sameTokens(got, plain[i]) || got[len(got)-1].Pages != plain[i][len(got)-1].Pages {
						t.Errorf("%s, batch of %d, request %d: %v, %v; want %v", name, batch, i, got, err, plain[i])
					}
				})
			}
			wg.Wait()
			st := s.Stats()
			s.Close()
			if st.Accepted > st.Drafted || name != "adaptive" && (st.Drafted == 0 || st.Accepted == 0) {
				t.Errorf("%s, batch of %d: %+v", name, batch, st)
			}
			if name == "itself" && st.Accepted < st.Drafted*9/10 {
				t.Errorf("%d of %d drafts of the model itself are its tokens", st.Accepted, st.Drafted)
			}
		}
	}
}

// A receipt of a reply that was drafted is that which a checker computes token by token.
func TestDraftedRepliesAreChecked(t *testing.T) {
	m := lmtest.Bind(open(t, "llama"))
	s := Start(m, cpu.New(2), Options{Speculative: Speculation{Ngram: true, Model: m, always: true}})
	defer s.Close()
	c := check.New(m, cpu.New(1))
	for i, q := range speculative(t, rand.New(rand.NewPCG(4, 9)), m, 12) {
		got, err := listen(s, t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		var reply []int32
		for _, tok := range got {
			reply = append(reply, tok.ID)
		}
		v, err := c.Check(t.Context(), q, reply)
		if err != nil || v.Wrong >= 0 || v.Pages != got[len(got)-1].Pages || v.Pages == (canon.Hash{}) {
			t.Errorf("request %d: %+v, %v", i, v, err)
		}
	}
}

// Adapted models are drafted for by the one model of their base, and say what they say without.
func TestSpeculationByAdapters(t *testing.T) {
	base := open(t, "llama")
	adapted, err := base.Adapted("../lm/testdata/adapters/llama-all")
	if err != nil {
		t.Fatal(err)
	}
	s := Start(base, cpu.New(2), Options{Speculative: Speculation{Ngram: true, Model: base, always: true}})
	defer s.Close()
	as, err := s.As(adapted)
	if err != nil {
		t.Fatal(err)
	}
	sampler := base.NewSampler(cpu.New(1))
	var wg sync.WaitGroup
	for i, q := range requests(rand.New(rand.NewPCG(5, 9)), base, 12) {
		m, by := base, lm.Replier(s)
		if i%2 == 0 {
			m, by = adapted, as
		}
		want := alone(t, m, m.Stages(cpu.New(1)), sampler, q)
		wg.Go(func() {
			var got []lm.Token
			for tok, err := range by.Reply(t.Context(), q) {
				if err != nil {
					t.Error(err)
				}
				got = append(got, tok)
			}
			if !sameTokens(got, want) {
				t.Errorf("request %d: %v, want %v", i, got, want)
			}
		})
	}
	wg.Wait()
	if st := s.Stats(); st.Accepted == 0 || st.Drafted == st.Accepted {
		t.Errorf("%+v", st)
	}
}

// What nobody waits for any more after a first drafted token is no reply's; who wants no more gets one token more, and no draft behind it.
func TestEnoughEndsDraftedReplies(t *testing.T) {
	m := open(t, "llama")
	s := Start(m, cpu.New(1), Options{Speculative: Speculation{Model: m, always: true}})
	defer s.Close()
	enough := make(chan struct{})
	close(enough)
	got, err := listen(s, t.Context(), &lm.Request{Prompt: []int32{1, 2}, MaxTokens: 20, Enough: enough})
	if err != nil || len(got) != 1 || got[0].Reason != lm.Cut {
		t.Errorf("%v, %v", got, err)
	}
}

// A model whose context is shorter, or that does not know a token, drafts as far as it can.
func TestDraftModelsThatDifferInSize(t *testing.T) {
	m, short := long(t, 256), open(t, "llama")
	s := Start(m, cpu.New(1), Options{Speculative: Speculation{Model: short, always: true}})
	defer s.Close()
	q := &lm.Request{Prompt: []int32{1, 2, 3}, MaxTokens: 200}
	got, err := listen(s, t.Context(), q)
	if want := alone(t, m, m.Stages(cpu.New(1)), m.NewSampler(cpu.New(1)), q); err != nil || !sameTokens(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if st := s.Stats(); st.Drafted == 0 || st.Drafted > int64(short.Context) {
		t.Errorf("%+v", st)
	}
	few := *short
	few.Vocabulary = 40
	d := &drafter{model: &few}
	p := &reply{tokens: []int32{1, 2}, sequence: newSequences()}
	if !d.follows(p, 3) {
		t.Error("tokens that it knows are not followed")
	}
	if p.tokens[1] = 40; d.follows(p, 3) {
		t.Error("a token is followed that the draft model does not have")
	}
	if err := (Speculation{Model: &few}).Check(m); err != nil {
		t.Error(err)
	}
	if few.Vocabulary = 48 + 129; (Speculation{Model: &few}).Check(m) == nil {
		t.Error("a model of other tokens drafts")
	}
	logits := read(t, short.Stages(cpu.New(1)), &lm.Sequence{}, []int32{1})
	if wide, err := fit(logits, 50); err != nil || wide.Len() != 50 {
		t.Errorf("%v, %v", wide, err)
	}
}

func TestNgrams(t *testing.T) {
	for _, x := range []struct {
		tokens []int32
		want   int
	}{
		{nil, -1},
		{[]int32{1}, -1},
		{[]int32{1, 2, 1}, -1},                     // one token says too little
		{[]int32{1, 2, 3, 1, 2}, 2},                // 3 followed
		{[]int32{1, 2, 3, 1, 2, 4, 1, 2}, 5},       // of two places the last
		{[]int32{9, 1, 2, 3, 1, 2, 4, 9, 1, 2}, 3}, // the longest end
		{[]int32{5, 5, 5}, 2},
	} {
		if got := lookUp(x.tokens); got != x.want {
			t.Errorf("%v: %d, want %d", x.tokens, got, x.want)
		}
	}
	if got := follow([]int32{1, 2, 3, 1, 2}, 2, 7); !slices.Equal(got, []int32{3, 1, 2, 3, 1, 2, 3}) {
		t.Errorf("%v", got)
	}
	if got := lookUp(append(make([]int32, lookBack+100), 7, 8)); got != -1 {
		t.Errorf("%d", got)
	}
}

// Drafts are made while they are worth their time, and tried again after a while.
func TestDraftsAreGivenUp(t *testing.T) {
	var o odds
	if got := o.width(0.1, 7); got < 3 {
		t.Errorf("%d tokens are drafted before anything is known", got)
	}
	for range 20 {
		o.learn(7, 7)
	}
	if got := o.width(0.1, 7); got != 7 {
		t.Errorf("%d tokens are drafted where all are right", got)
	}
	if got := o.width(0.1, 2); got != 2 {
		t.Errorf("%d tokens, at most 2", got)
	}
	if got := o.width(1, 7); got != 0 {
		t.Errorf("%d tokens are drafted that cost as much as they gain", got)
	}
	const price, rounds = 0.125, 1000
	drafts := 0
	o = odds{}
	for range rounds { // none is ever right
		if n := o.width(price, 7); n > 0 {
			o.learn(1, 0)
			drafts += n
		}
	}
	if lost := price * float64(drafts) / rounds; drafts < 5 || lost > 0.03 {
		t.Errorf("%d drafts in %d steps, none of which is right", drafts, rounds)
	}
}

// The line of a pace is that of the steps, also when some took forever.
func TestPace(t *testing.T) {
	var p pace
	if got := p.price(1, 0); got != untold {
		t.Errorf("%v before anything is known", got)
	}
	for i := range 400 {
		rows := 1 << (i % 4)
		took := time.Duration(10+2*rows) * time.Millisecond
		if p.add(rows, took); i == 200 {
			p.add(1, time.Hour)
		}
	}
	if step, row := p.line(); step < 0.009 || step > 0.011 || row < 0.0018 || row > 0.0022 {
		t.Errorf("steps of %v s and %v s for each row, want 0.01 and 0.002", step, row)
	}
	if one, eight := p.price(1, 0), p.price(8, 0); !(one > 0.15 && one < 0.18 && eight > 0.6 && eight < 0.63) {
		t.Errorf("%v of one, %v of eight: want a sixth and eight thirteenths", one, eight)
	}
	d := drafter{}
	if got := d.takes(4); got >= 0 {
		t.Errorf("%v s for a draft before any", got)
	}
	if d.pace = p; d.takes(1) < 0.0115 || d.takes(1) > 0.0125 || d.takes(8) > 0.0036 {
		t.Errorf("%v s for a draft, %v of eight together", d.takes(1), d.takes(8))
	}
	if with := p.price(1, 0.01); with < 0.9 || with > 1.1 {
		t.Errorf("%v with drafts that take as long as steps", with)
	}
	var same pace
	for range 100 {
		same.add(4, 8*time.Millisecond)
	}
	if step, row := same.line(); row <= 0 || step <= 0 {
		t.Errorf("%v, %v of steps that are all alike", step, row)
	}
}

// Tokens a second of a reply, without drafts and by n-grams, where text repeats itself and where it does not. TALLY_GGUF names a model; TALLY_DRAFT
// one that drafts for it.
func BenchmarkSpeculation(b *testing.B) {
	path := os.Getenv("TALLY_GGUF")
	if path == "" {
		b.Skip("TALLY_GGUF names no model")
	}
	f, err := files.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	var drafts *lm.Model
	if path := os.Getenv("TALLY_DRAFT"); path != "" {
		d, err := files.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		drafts = d.Weights
	}
	const log = "2026-11-30 12:00:%02d GET /v1/models 200 in 3 ms from 127.0.0.1\n"
	var lines strings.Builder
	for i := range 12 {
		fmt.Fprintf(&lines, log, i)
	}
	texts := map[string]string{
		"repetitive": lines.String(),
		"prose":      "<|im_start|>user\nWhy is the sky blue in the day and red in the evening?<|im_end|>\n<|im_start|>assistant\n",
	}
	for _, x := range []struct {
		name string
		by   Speculation
	}{{"off", Speculation{}}, {"ngram", Speculation{Ngram: true}}, {"model", Speculation{Model: drafts}}} {
		if x.name == "model" && drafts == nil {
			continue
		}
		for _, text := range []string{"repetitive", "prose"} {
			for _, temperature := range []float32{0, 0.7} {
				for _, n := range []int{1, 4} {
					b.Run(fmt.Sprintf("%s/%s/temperature=%v/batch=%d", text, x.name, temperature, n), func(b *testing.B) {
						prompt, err := f.Tokenizer.Encode(texts[text], false)
						if err != nil {
							b.Fatal(err)
						}
						measure(b, f.Weights, x.by, n, &lm.Request{Prompt: prompt, MaxTokens: 128, Sampling: lm.Sampling{Temperature: temperature}})
					})
				}
			}
		}
	}
}

// measure measures n replies at once, again and again, each by its own seed.
func measure(b *testing.B, m *lm.Model, by Speculation, n int, q *lm.Request) {
	s := Start(m, cpu.New(2), Options{Speculative: by})
	defer s.Close()
	ask := func(seed uint64) int {
		r := *q
		r.Seed = seed
		got, err := listen(s, b.Context(), &r)
		if err != nil {
			b.Error(err)
		}
		return len(got)
	}
	ask(99) // the prompt is read, and stages are prepared
	var tokens atomic.Int64
	before := s.Stats()
	for b.Loop() {
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() { tokens.Add(int64(ask(uint64(i)))) })
		}
		wg.Wait()
	}
	st := s.Stats()
	b.ReportMetric(float64(tokens.Load())/b.Elapsed().Seconds(), "tokens/s")
	if drafted := st.Drafted - before.Drafted; drafted > 0 {
		b.ReportMetric(100*float64(st.Accepted-before.Accepted)/float64(drafted), "%accepted")
	}
}

// made makes a model 768 wide, whose weights are drawn. Layers from the fourth on add little to what those before have said, so that the same model with
// four layers says mostly the same.
func made(b *testing.B, layers int) *lm.Model {
	b.Helper()
	c, err := family.Parse(fmt.Appendf(nil, `{"model_type": "llama", "num_hidden_layers": %d, "hidden_size": 768, "num_attention_heads": 12, "num_key_value_heads": 4,
		"intermediate_size": 2048, "vocab_size": 4096, "max_position_embeddings": 1024, "rms_norm_eps": 1e-5, "tie_word_embeddings": false}`, layers))
	if err != nil {
		b.Fatal(err)
	}
	m, err := lm.Make(c, func(name string, s tensor.Shape) *tensor.Tensor {
		h := fnv.New64()
		_, _ = h.Write([]byte(name))
		r := rand.New(rand.NewPCG(1, h.Sum64()))
		by := 0.05
		if layer := 0; strings.Contains(name, "o_proj") || strings.Contains(name, "down_proj") {
			if _, err := fmt.Sscanf(name, "model.layers.%d.", &layer); err == nil && layer >= 4 {
				by = 0.004
			}
		}
		x := tensor.Must(tensor.New(tensor.Float32, s))
		for i := range x.Len() {
			x.Set(i, tensor.F32(float32(by*r.NormFloat64())))
		}
		return x
	})
	if err != nil {
		b.Fatal(err)
	}
	return m
}

// Tokens a second of one reply and of four by a model of 16 layers, without drafts and with a model of its first four that drafts.
func BenchmarkDraftModel(b *testing.B) {
	m, d := made(b, 16), made(b, 4)
	for _, x := range []struct {
		name string
		by   Speculation
	}{{"off", Speculation{}}, {"model", Speculation{Model: d}}} {
		for _, temperature := range []float32{0, 1} {
			for _, n := range []int{1, 4} {
				b.Run(fmt.Sprintf("%s/temperature=%v/batch=%d", x.name, temperature, n), func(b *testing.B) {
					measure(b, m, x.by, n, &lm.Request{Prompt: []int32{1, 2, 3, 4, 5, 6, 7, 8}, MaxTokens: 128, Sampling: lm.Sampling{Temperature: temperature}})
				})
			}
		}
	}
}
