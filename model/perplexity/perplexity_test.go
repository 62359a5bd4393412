package perplexity_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/model/perplexity"
)

func open(t *testing.T) (*lm.Model, *lm.Stages) {
	t.Helper()
	m, err := lm.Open("../lm/testdata/llama")
	if err != nil {
		t.Fatal(err)
	}
	return m, m.Stages(cpu.New(1))
}

// text is tokens of a vocabulary of 48.
func text(n int) []int32 {
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = int32(i * i * 7 % 48)
	}
	return tokens
}

// The perplexity is that of the logits of each window, token by token.
func TestSecondHalvesAreCounted(t *testing.T) {
	m, s := open(t)
	for _, begin := range []int32{perplexity.None, 0} {
		const window = 10
		tokens := text(2*window + 3)
		sum, squares, n := 0.0, 0.0, 0.0
		for from := 0; from+window <= len(tokens); from += window {
			q := &lm.Sequence{}
			for i := range window - 1 {
				id := tokens[from+i]
				if i == 0 && begin != perplexity.None {
					id = begin
				}
				out, err := s.Step(t.Context(), []lm.Part{{Sequence: q, Tokens: []int32{id}, Logits: 1}})
				if err != nil {
					t.Fatal(err)
				}
				logits := tensor.Of[float32](out[0])
				if i < window/2 {
					continue
				}
				total := 0.0
				for _, x := range logits {
					total += math.Exp(float64(x))
				}
				x := math.Log(total) - float64(logits[tokens[from+i+1]])
				sum, squares, n = sum+x, squares+x*x, n+1
			}
		}
		told := 0
		r, err := perplexity.Measure(t.Context(), m, s, perplexity.Text{Tokens: tokens, Window: window, Begin: begin}, func(perplexity.Result) { told++ })
		if err != nil {
			t.Fatal(err)
		}
		want := math.Exp(sum / n)
		if math.Abs(r.Perplexity-want) > 1e-9*want || r.Windows != 2 || told != 2 || r.Counted != int(n) || r.Counted != 8 {
			t.Errorf("%+v after %d windows, want %v of %v tokens", r, told, want, n)
		}
		if e := want * math.Sqrt((squares/n-sum*sum/n/n)/(n-1)); math.Abs(r.Error-e) > 1e-9*e {
			t.Errorf("an error of %v, want %v", r.Error, e)
		}
	}
}

// The perplexity of a model to which all tokens are equally likely is their number.
func TestNothingIsKnown(t *testing.T) {
	m, _ := open(t)
	flat, err := lm.Make(&m.Config, func(_ string, s tensor.Shape) *tensor.Tensor { return tensor.Must(tensor.New(tensor.Float32, s)) })
	if err != nil {
		t.Fatal(err)
	}
	r, err := perplexity.Measure(t.Context(), flat, flat.Stages(cpu.New(1)), perplexity.Text{Tokens: text(64), Window: 64, Begin: perplexity.None}, func(perplexity.Result) {})
	if err != nil || math.Abs(r.Perplexity-48) > 1e-9 || r.Error > 1e-6 || r.Counted != 31 {
		t.Errorf("%+v (%v), want 48", r, err)
	}
}

func TestRefused(t *testing.T) {
	m, s := open(t)
	for says, x := range map[string]perplexity.Text{
		"a window of 3 tokens":                {Tokens: text(40), Window: 3},
		"a window of 65 tokens: want 4 to 64": {Tokens: text(70), Window: 65},
		"the text has 9 tokens":               {Tokens: text(9), Window: 10},
		"token 48: want 0 to 47":              {Tokens: []int32{48, 1, 1, 1}, Window: 4, Begin: perplexity.None},
	} {
		if _, err := perplexity.Measure(t.Context(), m, s, x, func(perplexity.Result) {}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}
