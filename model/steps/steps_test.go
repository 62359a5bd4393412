package steps_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/model/replies"
	"github.com/tally-network/tally/model/steps"
)

// open opens a model of model/lm/testdata, with room for some chunks if its positions are no weights; of a name with a plus sign, with an adapter.
func open(t testing.TB, name string) *lm.Model {
	t.Helper()
	family, adapter, adapted := strings.Cut(name, "+")
	dir := filepath.Join(t.TempDir(), family)
	from := filepath.Join("..", "lm", "testdata", family)
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(filepath.Join(from, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	config = []byte(strings.Replace(string(config), `"max_position_embeddings": 64`, `"max_position_embeddings": 500`, 1))
	if err := os.WriteFile(filepath.Join(dir, "config.json"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := lm.Open(dir)
	if err == nil && adapted {
		m, err = m.Adapted(filepath.Join("..", "lm", "testdata", "adapters", adapter))
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// served is a reply as a provider gives it.
type served struct {
	table   *steps.Table
	model   *lm.Model
	request *lm.Request
	reply   []int32
	pages   canon.Hash
}

func table(t testing.TB, m *lm.Model) *steps.Table {
	t.Helper()
	x, err := steps.New(m, m.WeightRoots(2), 2)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func serve(t testing.TB, x *steps.Table, m *lm.Model, q *lm.Request) *served {
	t.Helper()
	s := replies.Start(m, cpu.New(2), replies.Options{})
	defer s.Close()
	out := &served{table: x, model: m, request: q}
	q.Pages = true
	for token, err := range s.Reply(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		out.reply, out.pages = append(out.reply, token.ID), token.Pages
	}
	return out
}

// sequence is what its receipt says.
func (s *served) sequence() *dispute.Sequence {
	return &dispute.Sequence{
		Model: dispute.Model{Layers: s.table.Layers, Chunks: s.table.Chunks, Steps: s.table.Root(), Assets: canon.Sum(canon.DomainAssets, nil)}, Request: s.request.ID(),
		Prompt: len(s.request.Prompt), Reply: len(s.reply), Tokens: lm.TokensRoot(slices.Concat(s.request.Prompt, s.reply)), Pages: dispute.SaltedPages(s.pages, make([]byte, canon.HashSize)),
	}
}

func (s *served) witness(t testing.TB, e engine.Executor) *steps.Witness {
	t.Helper()
	w, err := s.table.Witness(t.Context(), e, 2, s.request, s.reply)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// some returns a request that draws by everything that there is.
func some(r *rand.Rand, m *lm.Model, prompt, reply int) *lm.Request {
	q := &lm.Request{Made: r.IntN(prompt), MaxTokens: reply, Seed: r.Uint64(), Sampling: lm.Sampling{
		Temperature: float32(r.IntN(3)), TopK: r.IntN(2) * 20, TopP: float32(r.IntN(2)) * 0.9, MinP: float32(r.IntN(2)) * 0.01,
		Repeat: 1 + float32(r.IntN(2))/4, Presence: float32(r.IntN(2)) / 2, Frequency: float32(r.IntN(2)) / 2,
	}}
	for range prompt {
		q.Prompt = append(q.Prompt, int32(r.IntN(m.Vocabulary)))
	}
	if r.IntN(2) == 0 {
		q.Sampling.Bias = map[int32]float32{int32(r.IntN(m.Vocabulary)): 2}
	}
	if r.IntN(2) == 0 {
		q.Ends = []int32{int32(r.IntN(m.Vocabulary))}
	}
	return q
}

var families = []string{"llama+llama-all", "qwen3", "gemma2", "gemma3", "phi3", "gpt2"}

// A reply that a server gives is right by its steps: the same pages, and no token that its chunks draw otherwise.
func TestServedRepliesAreRight(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, family := range families {
		m := open(t, family)
		x := table(t, m)
		for range 4 {
			prompt := 1 + r.IntN(m.Context*2/3)
			s := serve(t, x, m, some(r, m, prompt, 1+r.IntN(m.Context-prompt)))
			w := s.witness(t, cpu.New(2))
			chunks, tokens, err := w.Pages()
			if err != nil {
				t.Fatal(err)
			}
			if canon.Root(chunks) != s.pages || canon.Root(tokens) != s.sequence().Tokens {
				t.Fatalf("%s: %d tokens of prompt, %d of reply: other pages", family, prompt, len(s.reply))
			}
			for c := range chunks {
				if wrong, err := w.Wrong(c); err != nil || wrong >= 0 {
					t.Fatalf("%s: token %d is wrong, %v", family, wrong, err)
				}
			}
		}
	}
}

// liar is an executor that changes what one step gives.
type liar struct {
	engine.Executor
	model         *lm.Model
	chunk, column int
}

func (l liar) Prepare(p *graph.Program) (engine.Runner, error) {
	r, err := l.Executor.Prepare(p)
	return lying{r, l, p}, err
}

type lying struct {
	engine.Runner
	liar
	program *graph.Program
}

// lies reports whether a run is that of the step.
func (l lying) lies(in graph.Inputs) bool {
	if !l.program.Mixed || tensor.Of[int64](in.States[1].Find("first"))[0] != int64(l.chunk*lm.Chunk) {
		return false
	}
	p, err := l.model.Column(l.chunk, l.column)
	if err != nil || p.Commit().Root() != l.program.Commit().Root() {
		return false
	}
	mine := l.model.ColumnWeights(l.column)
	return in.States[0].Tensors[0] == mine.Tensors[0]
}

func (l lying) Run(ctx context.Context, in graph.Inputs, observe graph.Observer) (*graph.State, error) {
	if !l.lies(in) {
		return l.Runner.Run(ctx, in, observe)
	}
	change := func(x *tensor.Tensor) *tensor.Tensor {
		x = x.Clone()
		if x.Type == tensor.Int64 { // nothing is wrong
			clear(tensor.Of[int64](x))
		} else {
			tensor.Of[float32](x)[3] += 0.25
		}
		return x
	}
	at := l.program.Outputs[0]
	out, err := l.Runner.Run(ctx, in, func(i int, x *tensor.Tensor) error {
		if observe == nil {
			return nil
		}
		if at == (graph.Ref{Kind: graph.RefNode, Index: i}) {
			x = change(x)
		}
		return observe(i, x)
	})
	if err == nil {
		out.Tensors[0] = change(out.Tensors[0])
	}
	return out, err
}

// play plays a game to its end, and returns who lost. A party that finds no move, or none that is taken, loses by its clock.
func play(t testing.TB, s *dispute.Sequence, defender, challenger *steps.Witness) dispute.Game {
	t.Helper()
	g, err := dispute.Open(dispute.Claim{Sequence: s}, dispute.Rules{Depth: 6, Clock: 1 << 40, Answer: 1 << 30, Parallel: 1}, dispute.Opening{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for g.Stage != dispute.Over {
		w := defender
		if g.Stage.Turn() == dispute.Challenger {
			w = challenger
		}
		m, err := dispute.Play(&g, dispute.WitnessOf(w))
		if err != nil && !errors.Is(err, dispute.ErrAgree) {
			t.Fatalf("stage %v: %v", g.Stage, err)
		}
		next := g
		if err == nil {
			next, err = dispute.Apply(g, g.Stage.Turn(), m, 1)
		}
		if err != nil {
			t.Logf("stage %v: the %v has no move: %v", g.Stage, g.Stage.Turn(), err)
			next = dispute.Expire(g, g.Deadline()+1)
		}
		g = next
	}
	return g
}

// Whoever lies about a reply loses the game about it, whatever it lies in: keys and values, x, or a token.
func TestGames(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for _, family := range families {
		t.Run(family, func(t *testing.T) {
			m := open(t, family)
			x := table(t, m)
			prompt := min(m.Context/2, 150+r.IntN(40))
			honest := serve(t, x, m, some(r, m, prompt, min(m.Context-prompt, 60+r.IntN(60))))
			last := (prompt + len(honest.reply) - 2) / lm.Chunk
			for _, column := range []int{0, 1, 2, m.Columns() - 3} { // x behind the last layer is in no page: a lie there alone is signed nowhere
				lies := liar{cpu.New(2), m, min(last, column%2), column}
				bent := *honest
				w := bent.witness(t, lies)
				chunks, _, err := w.Pages()
				if err != nil {
					t.Fatal(err)
				}
				if bent.pages = canon.Root(chunks); bent.pages == honest.pages {
					t.Fatalf("column %d: the lie is none", column)
				}
				if g := play(t, bent.sequence(), w, honest.witness(t, cpu.New(2))); g.Loser != dispute.Defender {
					t.Errorf("column %d: the %v has lost: %s", column, g.Loser, g.Reason)
				}
				if g := play(t, honest.sequence(), honest.witness(t, cpu.New(2)), bent.witness(t, lies)); g.Loser != dispute.Challenger {
					t.Errorf("false challenge of column %d: the %v has lost: %s", column, g.Loser, g.Reason)
				}
			}
			if g := play(t, honest.sequence(), honest.witness(t, cpu.New(2)), honest.witness(t, cpu.New(1))); g.Loser != dispute.Challenger {
				t.Errorf("of two who agree the %v has lost: %s", g.Loser, g.Reason)
			}
			for range 3 {
				wrongToken(t, r, honest)
			}
		})
	}
}

// wrongToken plays about a reply of which a token was changed.
func wrongToken(t *testing.T, r *rand.Rand, honest *served) {
	t.Helper()
	bent, i := *honest, r.IntN(len(honest.reply))
	bent.reply = slices.Clone(honest.reply)
	bent.reply[i] = (bent.reply[i] + 1 + int32(r.IntN(honest.model.Vocabulary-1))) % int32(honest.model.Vocabulary)
	judged := len(honest.request.Prompt) + i
	w := bent.witness(t, liar{cpu.New(2), honest.model, (judged - 1) / lm.Chunk, honest.model.Columns() - 1})
	chunks, _, err := w.Pages()
	if err != nil {
		t.Fatal(err)
	}
	bent.pages = canon.Root(chunks)
	checks := bent.witness(t, cpu.New(2))
	if wrong, err := checks.Wrong((judged - 1) / lm.Chunk); err != nil || wrong != judged {
		t.Errorf("token %d is found wrong, %v, want %d", wrong, err, judged)
	}
	if g := play(t, bent.sequence(), w, checks); g.Loser != dispute.Defender {
		t.Errorf("token %d: the %v has lost: %s", judged, g.Loser, g.Reason)
	}
}

// A witness has no steps beside those of its reply, and a reply that is longer than the table has none.
func TestStepsThatAreNone(t *testing.T) {
	m := open(t, "llama")
	x := table(t, m)
	w, err := x.Witness(t.Context(), cpu.New(1), 1, &lm.Request{Prompt: []int32{1, 2}, MaxTokens: 3}, []int32{4, 5})
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range [][2]int{{1, 0}, {-1, 0}, {0, m.Columns()}, {0, -1}} {
		if _, _, _, err := w.Step(at[0], at[1]); err == nil {
			t.Errorf("step %v is there", at)
		}
		if _, err := w.Execute(at[0], at[1], 0); err == nil {
			t.Errorf("step %v runs", at)
		}
	}
	if _, _, err := w.Chunk(1); err == nil {
		t.Error("chunk 1 of 4 tokens is there")
	}
	if _, err := x.Witness(t.Context(), cpu.New(1), 1, &lm.Request{Prompt: make([]int32, 500)}, make([]int32, 100)); err == nil {
		t.Error("a reply of 600 tokens has a witness")
	}
	if _, err := x.Witness(t.Context(), cpu.New(1), 1, &lm.Request{Prompt: []int32{1}}, nil); err == nil {
		t.Error("no reply has a witness")
	}
}

// Tokens that are none of the model are wrong, and read like any other.
func TestStrangeTokens(t *testing.T) {
	m := open(t, "llama")
	w, err := table(t, m).Witness(t.Context(), cpu.New(1), 1, &lm.Request{Prompt: []int32{1, 2}, MaxTokens: 9, Sampling: lm.Sampling{Frequency: 1}}, []int32{-7, 1 << 30, 3, -1})
	if err != nil {
		t.Fatal(err)
	}
	if wrong, err := w.Wrong(0); err != nil || wrong != 2 {
		t.Errorf("token %d is wrong, %v, want 2", wrong, err)
	}
	for judged := 2; judged < 6; judged++ {
		e, err := w.Execute(0, m.Columns()-1, judged)
		if err != nil {
			t.Fatal(err)
		}
		if n := tensor.Of[int64](e.Out.Tensors[0])[0]; n != 1 && judged != 4 {
			t.Errorf("token %d is wrong %d times", judged, n)
		}
	}
}
