package consume

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
)

// temperature sharpens the distribution that Sample draws from.
const temperature = 0.7

// Sample lets a language model continue a text by n tokens. The same seed gives
// the same text.
func Sample(ctx context.Context, model *graph.Graph, exec engine.Executor, prompt []int32, n int, seed uint64) ([]int32, error) {
	m, err := newSpeaker(model, exec)
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(seed, 0))
	text := append([]int32{}, prompt...)
	for range n {
		logits, err := m.next(ctx, text)
		if err != nil {
			return nil, err
		}
		text = append(text, draw(r, logits))
	}
	return text, nil
}

// speaker is a language model's forward graph as a program, from tokens to logits.
type speaker struct {
	runner   engine.Runner
	tokens   []graph.Slot
	columns  int
	alphabet int
}

func newSpeaker(model *graph.Graph, exec engine.Executor) (*speaker, error) {
	t, err := op.Infer(model, lower.FP32)
	if err != nil {
		return nil, err
	}
	p, err := t.Function()
	if err != nil {
		return nil, err
	}
	m := &speaker{tokens: p.Slots, columns: t.Inputs[0].Shape[1], alphabet: t.Outputs[0].Shape[2]}
	m.runner, err = exec.Prepare(p)
	return m, err
}

// next returns the logits of the token after text.
func (m *speaker) next(ctx context.Context, text []int32) ([]float32, error) {
	if len(text) == 0 {
		return nil, fmt.Errorf("nothing to continue")
	}
	text = text[max(0, len(text)-m.columns):]
	tokens, err := tensor.New(m.tokens[0].Type, m.tokens[0].Shape)
	if err != nil {
		return nil, err
	}
	for i, c := range text {
		tokens.Set(i, tensor.Word(c))
	}
	end, err := m.runner.Run(ctx, graph.Inputs{States: []*graph.State{{Slots: m.tokens, Tensors: []*tensor.Tensor{tokens}}}}, nil)
	if err != nil {
		return nil, err
	}
	at := (len(text) - 1) * m.alphabet
	return tensor.Of[float32](end.Tensors[0])[at : at+m.alphabet], nil
}

// draw picks a token with the probability that the logits give it; never token
// 0, which stands for unknown characters.
func draw(r *rand.Rand, logits []float32) int32 {
	top := float64(logits[1])
	for _, x := range logits[1:] {
		top = max(top, float64(x))
	}
	var sum float64
	weights := make([]float64, len(logits))
	for i, x := range logits[1:] {
		weights[i+1] = math.Exp((float64(x) - top) / temperature)
		sum += weights[i+1]
	}
	at := r.Float64() * sum
	for i, w := range weights {
		if at -= w; at < 0 && i > 0 {
			return int32(i)
		}
	}
	return int32(len(logits) - 1)
}
