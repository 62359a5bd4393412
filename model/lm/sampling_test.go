package lm

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
)

// rates counts what is drawn for a request at many places.
func rates(t *testing.T, r *Request, logits []float32, draws int) []float64 {
	t.Helper()
	d := Sampler{exec: cpu.New(1), vocabulary: len(logits), prepared: map[samplerShape]*prepared{}}
	n, err := d.Begin(r)
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.Must(tensor.From(tensor.Shape{len(logits)}, logits))
	counts := make([]float64, len(logits))
	for place := range draws {
		if n.of.penalties { // each draw begins anew
			clear(tensor.Of[float32](n.in["reply"]))
		}
		tok, err := n.Draw(context.Background(), x, place)
		if err != nil {
			t.Fatal(err)
		}
		counts[tok.ID] += 1 / float64(draws)
	}
	return counts
}

// Tokens come as often as the probabilities say that are left of the logits.
func TestDrawsFollowProbabilities(t *testing.T) {
	const draws = 4000
	logits := []float32{1, 2, 3, 0, -1, 2.5, -4, 1.5}
	for name, c := range map[string]struct {
		s      Sampling
		prompt []int32
		want   func(x []float64) // changes logits to those of the probabilities that are wanted
	}{
		"as they are":         {Sampling{Temperature: 1}, nil, func([]float64) {}},
		"hot":                 {Sampling{Temperature: 2}, nil, func(x []float64) { each(x, func(_ int, v float64) float64 { return v / 2 }) }},
		"three greatest":      {Sampling{Temperature: 1, TopK: 3}, nil, only(2, 5, 1)},
		"half of all":         {Sampling{Temperature: 1, TopP: 0.5}, nil, only(2, 5)},
		"the likeliest":       {Sampling{Temperature: 1, TopP: 1e-6}, nil, only(2)},
		"not much less":       {Sampling{Temperature: 1, MinP: 0.3}, nil, only(2, 5, 1)},
		"all filters":         {Sampling{Temperature: 1, TopK: 5, TopP: 0.9, MinP: 0.3}, nil, only(2, 5, 1)},
		"biased":              {Sampling{Temperature: 1, Bias: map[int32]float32{6: 7, 2: -100}}, nil, func(x []float64) { x[6] += 7; x[2] -= 100 }},
		"seen in the prompt":  {Sampling{Temperature: 1, Repeat: 2}, []int32{2, 4}, func(x []float64) { x[2] /= 2; x[4] *= 2 }},
		"prompts not counted": {Sampling{Temperature: 1, Presence: 1, Frequency: 1}, []int32{2, 4}, func([]float64) {}},
	} {
		t.Run(name, func(t *testing.T) {
			x := make([]float64, len(logits))
			for i, v := range logits {
				x[i] = float64(v)
			}
			c.want(x)
			sum := 0.0
			each(x, func(_ int, v float64) float64 { sum += math.Exp(v); return math.Exp(v) })
			got := rates(t, &Request{Prompt: c.prompt, Sampling: c.s, Seed: 11}, logits, draws)
			for i := range x {
				want := x[i] / sum
				if sigma := math.Sqrt(want * (1 - want) / draws); math.Abs(got[i]-want) > 4.5*sigma+1e-9 {
					t.Errorf("token %d came %.4f of the time, want %.4f", i, got[i], want)
				}
			}
		})
	}
}

func each(x []float64, f func(i int, v float64) float64) {
	for i := range x {
		x[i] = f(i, x[i])
	}
}

func only(ids ...int) func(x []float64) {
	return func(x []float64) {
		each(x, func(i int, v float64) float64 {
			if slices.Contains(ids, i) {
				return v
			}
			return math.Inf(-1)
		})
	}
}

// The greatest is taken where there is no temperature; penalties count what the reply has.
func TestGreedyDraws(t *testing.T) {
	d := Sampler{exec: cpu.New(1), vocabulary: 4, prepared: map[samplerShape]*prepared{}}
	n, err := d.Begin(&Request{Sampling: Sampling{Presence: 0.25, Frequency: 0.5}, Likeliest: 3})
	if err != nil {
		t.Fatal(err)
	}
	logits := tensor.Must(tensor.From(tensor.Shape{4}, []float32{1, 2.5, 2, 2}))
	var got []int32
	for place := range 6 {
		tok, err := n.Draw(context.Background(), logits, place)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, tok.ID)
		if len(tok.Likeliest) != 3 || tok.Likeliest[0].ID != 1 || tok.Likeliest[1].ID != 2 || tok.Likeliest[2].ID != 3 {
			t.Fatalf("the likeliest are %v", tok.Likeliest)
		}
		if i := slices.IndexFunc(tok.Likeliest, func(s Candidate) bool { return s.ID == tok.ID }); i >= 0 && tok.Likeliest[i].LogProb != tok.LogProb {
			t.Errorf("token %d has %v, and %v among the likeliest", tok.ID, tok.LogProb, tok.Likeliest[i].LogProb)
		}
	}
	// 2.5 falls to 1.75, 2 to 1.25 each; then 1.75 to 1.25.
	if want := []int32{1, 2, 3, 1, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// The same is drawn by every executor, from logits with ties and with what is no number.
func TestDrawsAreTheSameEverywhere(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const vocabulary = 50
	for i := range 60 {
		logits := make([]float32, vocabulary)
		for j := range logits {
			logits[j] = float32(math.Round(8*r.NormFloat64()) / 4)
			if i%10 == 9 && r.IntN(8) == 0 {
				logits[j] = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}[r.IntN(3)]
			}
		}
		req := &Request{Prompt: []int32{int32(r.IntN(vocabulary))}, Seed: r.Uint64(), Likeliest: i % 3, Sampling: Sampling{
			Temperature: float32(i%3) * 0.7, TopK: i % 4 * 7, TopP: float32(i%5) / 4, MinP: float32(i%2) / 50, Repeat: float32(i%2) * 1.3, Presence: float32(i % 2),
		}}
		x := tensor.Must(tensor.From(tensor.Shape{vocabulary}, logits))
		var first []Token
		for _, e := range []engine.Executor{engine.Reference{}, cpu.New(1), cpu.New(2)} {
			d := Sampler{exec: e, vocabulary: vocabulary, prepared: map[samplerShape]*prepared{}}
			n, err := d.Begin(req)
			if err != nil {
				t.Fatal(err)
			}
			var got []Token
			for place := range 3 {
				tok, err := n.Draw(context.Background(), x, place)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, tok)
			}
			if first == nil {
				first = got
			}
			if !slices.EqualFunc(got, first, sameToken) {
				t.Fatalf("request %d: %s draws %v, the reference %v", i, e.Name(), got, first)
			}
		}
	}
}

func sameToken(a, b Token) bool {
	return a.ID == b.ID && equal(a.LogProb, b.LogProb) && a.Reason == b.Reason &&
		slices.EqualFunc(a.Likeliest, b.Likeliest, func(x, y Candidate) bool { return x.ID == y.ID && equal(x.LogProb, y.LogProb) })
}

func equal(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }

// A key depends on all of its seed and place, and is no stranger's choice: it is told here once for all.
func TestKeys(t *testing.T) {
	seen := map[[2]uint32]bool{}
	for _, seed := range []uint64{0, 1, 2, 1 << 32, 1<<32 + 1, math.MaxUint64} {
		for _, place := range []int{0, 1, 2, 127, 128, 1 << 24} {
			k := Key(seed, place)
			if seen[k] {
				t.Errorf("seed %d, place %d: key %v again", seed, place, k)
			}
			seen[k] = true
		}
	}
	if k := Key(7, 9); k != [2]uint32{op.Mix(7 + op.Mix(9+op.Mix(0))), op.Mix(op.Mix(op.Mix(9 + op.Mix(0))))} {
		t.Errorf("key %v", k)
	}
}

func TestSamplingsRefused(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for says, s := range map[string]Sampling{
		"the temperature is -1":    {Temperature: -1},
		"the temperature is NaN":   {Temperature: nan},
		"top_p is 1.5":             {TopP: 1.5},
		"min_p 2":                  {MinP: 2},
		"top_k is -1":              {TopK: -1},
		"the repetition penalty":   {Repeat: inf},
		"+Inf for frequency":       {Frequency: inf},
		"for token 9: want a fini": {Bias: map[int32]float32{9: 1}},
		"for token -1":             {Bias: map[int32]float32{-1: 1}},
		"a bias of NaN":            {Bias: map[int32]float32{1: nan}},
	} {
		if err := s.Check(9); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	if err := (&Sampling{Temperature: 1, TopP: 1, MinP: 1, TopK: 1 << 40, Bias: map[int32]float32{8: -100}}).Check(9); err != nil {
		t.Error(err)
	}
}

// Tokens are drawn of a vocabulary as models have them.
func BenchmarkDraw(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 4))
	logits := make([]float32, 49152)
	for i := range logits {
		logits[i] = float32(3 * r.NormFloat64())
	}
	x := tensor.Must(tensor.From(tensor.Shape{len(logits)}, logits))
	for _, c := range []struct {
		name string
		r    Request
	}{
		{"greedy", Request{}}, {"all", Request{Sampling: Sampling{Temperature: 1}}}, {"filtered", Request{Sampling: Sampling{Temperature: 1, TopP: 0.9}}},
		{"penalised", Request{Sampling: Sampling{Frequency: 1}}}, {"likeliest", Request{Likeliest: 5}},
	} {
		b.Run(c.name, func(b *testing.B) {
			d := Sampler{exec: cpu.New(2), vocabulary: len(logits), prepared: map[samplerShape]*prepared{}}
			n, err := d.Begin(&c.r)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			place := 0
			for b.Loop() {
				if _, err := n.Draw(b.Context(), x, place); err != nil {
					b.Fatal(err)
				}
				place++
			}
		})
	}
}
