// Package perplexity measures how well a language model predicts a text.
//
// Call [Measure]. The text is cut into windows, and of each the second half is counted: every token there is foretold by at least half a window. The
// perplexity is e to their mean negative log-likelihood. So llama.cpp's llama-perplexity has it, and figures can be compared.
//
// Invariant: windows are read apart. Each begins with the token that begins texts, if the model wants one.
//
// Source: tools/perplexity of llama.cpp.
package perplexity

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/model/lm"
)

// Window is how many tokens a window has unless somebody says otherwise, as in llama.cpp.
const Window = 512

// minWindow has a token that is counted.
const minWindow = 4

// None stands for no token that begins texts.
const None = -1

// Text is a text to be foretold.
type Text struct {
	Tokens []int32
	Window int
	Begin  int32 // the token with which each window begins, or None
}

// Result is a text's perplexity, and what it is of.
type Result struct {
	Perplexity float64 `json:"perplexity"`
	Error      float64 `json:"standard_error"` // of the perplexity, if tokens were independent
	Windows    int     `json:"windows"`
	Window     int     `json:"window_tokens"`
	Counted    int     `json:"counted_tokens"`
}

// Measure returns how well a model predicts a text. It tells how far it is after each window.
func Measure(ctx context.Context, m *lm.Model, s *lm.Stages, t Text, tell func(Result)) (r Result, err error) {
	switch {
	case t.Window < minWindow || t.Window > m.Context:
		return r, fmt.Errorf("a window of %d tokens: want %d to %d, which is the model's context", t.Window, minWindow, m.Context)
	case len(t.Tokens) < t.Window:
		return r, fmt.Errorf("the text has %d tokens, and a window %d: take a longer text, or a smaller window", len(t.Tokens), t.Window)
	}
	r.Window = t.Window
	sum, squares := 0.0, 0.0
	for tokens := range slices.Chunk(t.Tokens, t.Window) {
		if len(tokens) < t.Window {
			break // of which too little is known
		}
		all, err := negLogLikelihoods(ctx, s, tokens, t.Begin)
		if err != nil {
			return r, err
		}
		for _, x := range all {
			sum, squares = sum+x, squares+x*x
		}
		r.Windows++
		r.Counted += len(all)
		n := float64(r.Counted)
		r.Perplexity = math.Exp(sum / n)
		if n > 1 {
			r.Error = r.Perplexity * math.Sqrt(max(0, squares/n-sum/n*(sum/n))/(n-1))
		}
		tell(r)
	}
	return r, nil
}

// negLogLikelihoods returns −log of the probability of each token in the second half of a window but the first.
func negLogLikelihoods(ctx context.Context, s *lm.Stages, tokens []int32, begin int32) (all []float64, err error) {
	read := slices.Clone(tokens[:len(tokens)-1]) // nothing comes after the last
	if begin != None {
		read[0] = begin
	}
	at, first := 0, len(tokens)/2
	q := &lm.Sequence{Capacity: len(read)}
	for part := range slices.Chunk(read, lm.Chunk) {
		wanted := min(len(part), max(0, at+len(part)-first))
		at += len(part)
		logits, err := s.Step(ctx, []lm.Part{{Sequence: q, Tokens: part, Logits: wanted}})
		if err != nil {
			return nil, err
		}
		if wanted == 0 {
			continue
		}
		x, vocabulary := tensor.Of[float32](logits[0]), logits[0].Shape[1]
		for i := range wanted {
			next := tokens[at-wanted+i+1]
			all = append(all, negLogLikelihood(x[i*vocabulary:][:vocabulary], next))
		}
	}
	return all, nil
}

// negLogLikelihood is −log of a token's probability.
func negLogLikelihood(logits []float32, token int32) float64 {
	most := float64(slices.Max(logits))
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x) - most)
	}
	return math.Log(sum) + most - float64(logits[token])
}
