package replies

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/model/lm"
)

func open(t testing.TB, name string) *lm.Model {
	t.Helper()
	m, err := lm.Open("../lm/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// read reads tokens into a sequence, and returns the logits of what follows.
func read(t *testing.T, stages *lm.Stages, q *lm.Sequence, tokens []int32) (logits *tensor.Tensor) {
	t.Helper()
	for part := range slices.Chunk(tokens, lm.Chunk) {
		out, err := stages.Step(t.Context(), []lm.Part{{Sequence: q, Tokens: part, Logits: 1}})
		if err != nil {
			t.Fatal(err)
		}
		logits = out[0]
	}
	return logits
}

// alone replies to a request with nobody else there, token by token.
func alone(t *testing.T, m *lm.Model, stages *lm.Stages, d *lm.Sampler, r *lm.Request) []lm.Token {
	t.Helper()
	s := &lm.Sequence{}
	draws, err := d.Begin(r)
	if err != nil {
		t.Fatal(err)
	}
	var out []lm.Token
	next := r.Prompt
	for {
		tok, err := draws.Draw(t.Context(), read(t, stages, s, next), s.Len())
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case slices.Contains(r.Ends, tok.ID):
			tok.Reason = lm.Stop
		case len(out)+1 == r.MaxTokens || s.Len()+1 == m.Context:
			tok.Reason = lm.Length
		}
		if out = append(out, tok); tok.Reason != "" {
			return out
		}
		next = []int32{tok.ID}
	}
}

// requests are some of all kinds, many of which begin alike.
func requests(r *rand.Rand, m *lm.Model, n int) []*lm.Request {
	stem := make([]int32, m.Context)
	for i := range stem {
		stem[i] = int32(r.IntN(m.Vocabulary))
	}
	out := make([]*lm.Request, n)
	for i := range out {
		prompt := slices.Clone(stem[:1+r.IntN(m.Context/2)])
		for range r.IntN(4) {
			prompt = append(prompt, int32(r.IntN(m.Vocabulary)))
		}
		out[i] = &lm.Request{Prompt: prompt, MaxTokens: 1 + r.IntN(m.Context), Ends: []int32{int32(r.IntN(m.Vocabulary))}, Seed: r.Uint64(), Likeliest: r.IntN(2) * 3, Sampling: lm.Sampling{
			Temperature: float32(r.IntN(2)), TopP: float32(r.IntN(3)) / 3, Frequency: float32(r.IntN(2)) / 2, Repeat: 1 + float32(r.IntN(2))/8,
		}}
	}
	return out
}

func sameTokens(x, y []lm.Token) bool {
	return slices.EqualFunc(x, y, func(a, b lm.Token) bool {
		return a.ID == b.ID && a.LogProb == b.LogProb && a.Reason == b.Reason && slices.Equal(a.Likeliest, b.Likeliest)
	})
}

// Replies that are made together are those that are made alone, whoever comes, goes and listens slowly.
func TestRepliesAreTheSameInABatch(t *testing.T) {
	for _, name := range []string{"llama", "gemma2"} {
		t.Run(name, func(t *testing.T) {
			m := open(t, name)
			stages, sampler := m.Stages(cpu.New(1)), m.NewSampler(cpu.New(1))
			r := rand.New(rand.NewPCG(1, 9))
			all := requests(r, m, 24)
			for _, o := range []Options{{}, {Sequences: 1}, {Sequences: 3, Bytes: int64(3 * m.Context * m.TokenBytes())}} {
				s := Start(m, cpu.New(2), o)
				var wg sync.WaitGroup
				for i, q := range all {
					leaves, slow := r.IntN(4) == 0, r.IntN(4) == 0
					wg.Go(func() {
						want := alone0(t, m, stages, sampler, q)
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						var got []lm.Token
						for tok, err := range s.Reply(ctx, q) {
							if err != nil {
								if !leaves || !errors.Is(err, context.Canceled) {
									t.Errorf("request %d: %v", i, err)
								}
								return
							}
							got = append(got, tok)
							if slow {
								time.Sleep(time.Millisecond)
							}
							if leaves && len(got) == 1+i%5 {
								if i%2 == 0 {
									return
								}
								cancel()
							}
						}
						if !leaves && !sameTokens(got, want) {
							t.Errorf("request %d: %v in a batch, %v alone", i, got, want)
						}
					})
				}
				wg.Wait()
				st := s.Stats()
				if s.Close(); st.Replies > int64(len(all)) || o.Sequences != 1 && st.Reused == 0 || st.Drawn == 0 {
					t.Errorf("%+v", st)
				}
			}
		})
	}
}

var one sync.Mutex

// alone0 is alone, of which one runs at a time.
func alone0(t *testing.T, m *lm.Model, stages *lm.Stages, d *lm.Sampler, r *lm.Request) []lm.Token {
	one.Lock()
	defer one.Unlock()
	return alone(t, m, stages, d, r)
}

func listen(s *Server, ctx context.Context, r *lm.Request) (out []lm.Token, err error) {
	for tok, e := range s.Reply(ctx, r) {
		if e != nil {
			return out, e
		}
		out = append(out, tok)
	}
	return out, nil
}

// Replies by adapters of one base are those that each gives alone: some in one step, some in turns, and nobody reads on from what another has read.
func TestRepliesByAdapters(t *testing.T) {
	base := open(t, "llama")
	models := []*lm.Model{base}
	for _, name := range []string{"llama-some", "llama-other", "llama-all"} {
		m, err := base.Adapted("../lm/testdata/adapters/" + name)
		if err != nil {
			t.Fatal(err)
		}
		models = append(models, m)
	}
	s := Start(base, cpu.New(2), Options{Sequences: 6})
	defer s.Close()
	r := rand.New(rand.NewPCG(2, 9))
	all := requests(r, base, 24)
	sampler := base.NewSampler(cpu.New(1))
	var wg sync.WaitGroup
	for i, q := range all {
		m := models[r.IntN(len(models))]
		want := alone(t, m, m.Stages(cpu.New(1)), sampler, q)
		as, err := s.As(m)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			var got []lm.Token
			for tok, err := range as.Reply(t.Context(), q) {
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
	if got := s.Stats(); got.Replies != int64(len(all)) || got.Reused == 0 {
		t.Errorf("%+v", got)
	}
	if _, err := s.As(open(t, "llama")); err == nil || !strings.Contains(err.Error(), "another base") {
		t.Errorf("%v of a stranger", err)
	}
}

func TestRefusals(t *testing.T) {
	m := open(t, "llama")
	s := Start(m, cpu.New(1), Options{Bytes: int64(20 * m.TokenBytes())})
	defer s.Close()
	for says, r := range map[string]lm.Request{
		"the prompt has no tokens":     {MaxTokens: 1},
		"leave no room for a reply":    {Prompt: make([]int32, m.Context), MaxTokens: 1},
		"want at least 1":              {Prompt: []int32{1}},
		"21 likeliest tokens":          {Prompt: []int32{1}, MaxTokens: 1, Likeliest: 21},
		"token 48: want 0 to 47":       {Prompt: []int32{48}, MaxTokens: 1},
		"token -1":                     {Prompt: []int32{1}, MaxTokens: 1, Ends: []int32{-1}},
		"the temperature is -1":        {Prompt: []int32{1}, MaxTokens: 1, Sampling: lm.Sampling{Temperature: -1}},
		"ask for fewer, or allow more": {Prompt: []int32{1}, MaxTokens: 20},
	} {
		if got, err := listen(s, t.Context(), &r); err == nil || !strings.Contains(err.Error(), says) || len(got) > 0 {
			t.Errorf("%v, %v, want %q", got, err, says)
		}
	}
	if got, err := listen(s, t.Context(), &lm.Request{Prompt: []int32{1}, MaxTokens: 19}); err != nil || len(got) != 19 {
		t.Errorf("%v, %v", got, err)
	}
}

// Requests beyond what may wait are refused; those that wait end with the server. No goroutine is left.
func TestClosing(t *testing.T) {
	before := runtime.NumGoroutine()
	m := open(t, "llama")
	s := Start(m, cpu.New(1), Options{Sequences: 1, Waiting: 2})
	held := make(chan struct{})
	var wg sync.WaitGroup
	errs := make(chan error, 3)
	first := make(chan struct{})
	wg.Go(func() { // it takes one token, and listens no more until the server has ended
		for range s.Reply(t.Context(), &lm.Request{Prompt: []int32{1}, MaxTokens: 1 << 20}) {
			close(first)
			<-held
			return
		}
	})
	<-first
	for range 2 {
		wg.Go(func() {
			_, err := listen(s, t.Context(), &lm.Request{Prompt: []int32{1}, MaxTokens: 1})
			errs <- err
		})
	}
	for s.Stats().Waiting+int(s.Stats().Replies)-1 < 2 {
		time.Sleep(time.Millisecond)
	}
	if s.Stats().Waiting == 2 {
		if _, err := listen(s, t.Context(), &lm.Request{Prompt: []int32{1}, MaxTokens: 1}); !errors.Is(err, ErrBusy) {
			t.Errorf("%v, want ErrBusy", err)
		}
	}
	s.Close()
	close(held)
	wg.Wait()
	for range 2 {
		if err := <-errs; err != nil && !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	}
	if _, err := listen(s, t.Context(), &lm.Request{Prompt: []int32{1}, MaxTokens: 1}); !errors.Is(err, ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}
	for range 200 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, before it were %d", runtime.NumGoroutine(), before)
}

// Who does not listen lets others by, and has the same reply when it listens again.
func TestSlowListenersMakeRoom(t *testing.T) {
	m := open(t, "llama")
	for _, bytes := range []int64{0, int64(m.Context * m.TokenBytes())} { // with and without room to keep the sequence
		s := Start(m, cpu.New(1), Options{Sequences: 1, Bytes: bytes, ahead: 2})
		slow := &lm.Request{Prompt: []int32{1, 2}, MaxTokens: 30, Sampling: lm.Sampling{Temperature: 1, Frequency: 1}, Seed: 3}
		want := alone(t, m, m.Stages(cpu.New(1)), m.NewSampler(cpu.New(1)), slow)
		var got []lm.Token
		for tok, err := range s.Reply(t.Context(), slow) {
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, tok); len(got)%7 == 1 {
				if x, err := listen(s, t.Context(), &lm.Request{Prompt: []int32{5, int32(len(got))}, MaxTokens: m.Context - 2}); err != nil || len(x) != m.Context-2 {
					t.Fatalf("%d tokens, %v, beside a reply that nobody listens to", len(x), err)
				}
			}
		}
		if !sameTokens(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		s.Close()
	}
}

// Who leaves while it waits makes room in the queue at once.
func TestLeavingTheQueue(t *testing.T) {
	m := open(t, "llama")
	s := Start(m, cpu.New(1), Options{Sequences: 1, Waiting: 1, ahead: 1})
	defer s.Close()
	for range s.Reply(t.Context(), &lm.Request{Prompt: []int32{1}, MaxTokens: 60}) {
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := listen(s, ctx, &lm.Request{Prompt: []int32{2}, MaxTokens: 1 << 20})
			left <- err
		}()
		cancel()
		if err := <-left; err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if n := s.Stats().Waiting; n != 0 {
			t.Fatalf("%d wait, who have left", n)
		}
	}
}

// Who waits for longer than the server lets anybody wait is told so; who has begun is not.
func TestPatience(t *testing.T) {
	m := open(t, "llama")
	s := &Server{model: m, options: Options{Patience: 5 * time.Millisecond}.withDefaults(), wake: make(chan struct{}, 1)} // nobody serves
	if _, err := listen(s, t.Context(), &lm.Request{Prompt: []int32{1}, MaxTokens: 3}); !errors.Is(err, ErrBusy) || s.Stats().Waiting != 0 {
		t.Errorf("%v, %d wait", err, s.Stats().Waiting)
	}
	s.options.Patience = time.Minute
	go func() {
		for s.Stats().Waiting == 0 {
			time.Sleep(time.Millisecond)
		}
		s.mu.Lock()
		p := s.waiting[0]
		p.begun = true
		s.mu.Unlock()
		if s.giveUp(p) {
			t.Error("a reply that has begun is given up")
		}
		p.out <- lm.Token{ID: 7, Reason: lm.Stop}
		p.end(nil)
	}()
	if got, err := listen(s, t.Context(), &lm.Request{Prompt: []int32{1}, MaxTokens: 3}); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

// faulty is an executor that panics when it is told to.
type faulty struct {
	engine.Executor
	now atomic.Bool
}

func (f *faulty) Prepare(p *graph.Program) (engine.Runner, error) {
	if f.now.Load() {
		panic("a fault")
	}
	r, err := f.Executor.Prepare(p)
	return faultyRunner{r, f}, err
}

type faultyRunner struct {
	engine.Runner
	of *faulty
}

func (r faultyRunner) Run(ctx context.Context, in graph.Inputs, observe graph.Observer) (*graph.State, error) {
	if r.of.now.Load() {
		panic("a fault")
	}
	return r.Runner.Run(ctx, in, observe)
}

// A fault of the program ends the model's replies with an error, and not the process.
func TestPanicsEndTheServer(t *testing.T) {
	m := open(t, "llama")
	e := &faulty{Executor: cpu.New(1)}
	s := Start(m, e, Options{})
	defer s.Close()
	q := &lm.Request{Prompt: []int32{1}, MaxTokens: 3}
	if _, err := listen(s, t.Context(), q); err != nil {
		t.Fatal(err)
	}
	e.now.Store(true)
	if _, err := listen(s, t.Context(), q); !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "a fault") {
		t.Errorf("%v", err)
	}
	e.now.Store(false)
	if _, err := listen(s, t.Context(), q); !errors.Is(err, ErrFailed) {
		t.Errorf("%v after a fault", err)
	}
	early := Start(m, e, Options{})
	defer early.Close()
	e.now.Store(true) // while its draws are prepared
	if _, err := listen(early, t.Context(), q); !errors.Is(err, ErrFailed) {
		t.Errorf("%v", err)
	}
}

// long is a model whose context is longer than what sequences begin with.
func long(t *testing.T, context int) *lm.Model {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "m"), os.DirFS("../lm/testdata/llama")); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "m", "config.json")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, bytes.Replace(text, []byte(`"max_position_embeddings": 64`), fmt.Appendf(nil, `"max_position_embeddings": %d`, context), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := lm.Open(filepath.Join(dir, "m"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Replies that may become long begin together, wait for each other when memory ends, and are those that each would have alone.
func TestRepliesThatGrowShareMemory(t *testing.T) {
	m := long(t, 1024)
	stages, sampler := m.Stages(cpu.New(1)), m.NewSampler(cpu.New(1))
	s := Start(m, cpu.New(1), Options{Bytes: int64(m.Context * m.TokenBytes())})
	defer s.Close()
	var wg sync.WaitGroup
	s.mu.Lock() // until all wait
	for i := range 4 {
		q := &lm.Request{Prompt: []int32{int32(i), 3}, MaxTokens: 400, Seed: uint64(i), Sampling: lm.Sampling{Temperature: 1}}
		want := alone(t, m, stages, sampler, q)
		wg.Go(func() {
			if got, err := listen(s, t.Context(), q); err != nil || !sameTokens(got, want) {
				t.Errorf("request %d: %d tokens, %v, and alone %d", i, len(got), err, len(want))
			}
		})
	}
	s.mu.Unlock()
	for s.Stats().Active < 2 { // each may need all there is, and so none would begin beside another
		if s.Stats().Drawn >= 1600 {
			t.Fatal("none began beside another")
		}
		time.Sleep(100 * time.Microsecond)
	}
	wg.Wait()
	if st := s.Stats(); st.Preempted == 0 || st.Replies != 4 {
		t.Errorf("%+v", st)
	}
}

// What a prompt has in common with another is read once.
func TestPrefixesAreReused(t *testing.T) {
	m := open(t, "llama")
	s := Start(m, cpu.New(1), Options{})
	defer s.Close()
	prompt := make([]int32, 40)
	for i := range prompt {
		prompt[i] = int32(i)
	}
	for i, want := range []int64{0, 39, 30, 0} {
		before := s.Stats()
		r := &lm.Request{Prompt: slices.Clone(prompt), MaxTokens: 3}
		if i == 3 { // who asks for the first time learns nothing of what others asked
			r.Owner = "another"
		}
		if i == 2 {
			r.Prompt[30] = 47
		}
		if _, err := listen(s, t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if got := s.Stats().Reused - before.Reused; got != want {
			t.Errorf("request %d took over %d tokens, want %d", i, got, want)
		}
	}
	c := &cache{}
	for i := range 8 {
		c.keep(reader{}, []int32{int32(i)}, newSequences())
	}
	c.keep(reader{}, []int32{7, 1}, newSequences()) // goes on from one of them
	if len(c.kept) != 8 {
		t.Errorf("%d sequences are kept", len(c.kept))
	}
}

// Replies of a tiny model at once, which are all overhead: tokens a second of all.
func BenchmarkReplies(b *testing.B) {
	for _, n := range []int{1, 4, 16} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := open(b, "llama")
			s := Start(m, cpu.New(2), Options{})
			defer s.Close()
			b.ReportAllocs()
			for b.Loop() {
				var wg sync.WaitGroup
				for i := range n {
					wg.Go(func() {
						if _, err := listen(s, b.Context(), &lm.Request{Prompt: []int32{int32(i), 2, 3}, MaxTokens: 50}); err != nil {
							b.Error(err)
						}
					})
				}
				wg.Wait()
			}
			b.ReportMetric(float64(50*n*b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}
