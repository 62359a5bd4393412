package lm

import (
	"context"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/model/grammar"
)

// ByTables draws as the graph defines that gathers the tables of a form.
type ByTables struct {
	*ReplySampler
	tables *grammar.Tables
	state  int64
}

// BeginByTables is Sampler.Begin, of draws by tables.
func BeginByTables(m *Model, e engine.Executor, r *Request) (*ByTables, error) {
	n, err := m.NewSampler(e).Begin(r)
	if err != nil {
		return nil, err
	}
	t := n.follows.form.Tables()
	if n.fn, err = prepare(e, n.of.graph(m.Vocabulary, &formShape{t.States, t.Longest})); err != nil {
		return nil, err
	}
	for name, x := range formInputs(t, m.Vocabulary, r.Ends) { // each its own
		n.in[name] = x
	}
	return &ByTables{n, t, 0}, nil
}

// Draw is ReplySampler.Draw. The state follows from the graph alone.
func (n *ByTables) Draw(ctx context.Context, logits *tensor.Tensor, place int) (Token, error) {
	key := Key(n.seed, place)
	n.in["key"] = tensor.Must(tensor.From(tensor.Shape{2}, key[:]))
	n.in["logits"] = logits
	n.in["state"] = tensor.Must(tensor.From(tensor.Shape{1}, []int64{n.state}))
	out, err := n.fn.call(ctx, n.in)
	if err != nil {
		return Token{}, err
	}
	t := Token{ID: int32(tensor.Of[int64](out.Find("token"))[0])}
	if n.of.penalties {
		tensor.Of[float32](n.in["reply"])[t.ID]++
	}
	if n.of.logProbs {
		t.LogProb = tensor.Of[float32](out.Find("log_prob"))[0]
	}
	if tensor.Of[uint8](n.in["ends"])[t.ID] == 1 {
		t.Reason = Stop
		return t, nil
	}
	n.state = tensor.Of[int64](out.Find("next"))[0]
	final := true // nothing leads on from it
	for c := range grammar.Over {
		final = final && int(n.tables.Moves[int(n.state)*grammar.Symbols+c]) == n.tables.States-1
	}
	if final {
		t.Reason = Stop
	}
	return t, nil
}

// formInputs are the inputs of mask that do not change during a reply.
func formInputs(t *grammar.Tables, vocabulary int, ends []int32) map[string]*tensor.Tensor {
	texts := make([]int64, vocabulary*t.Longest)
	for i := range texts {
		texts[i] = grammar.Never
	}
	for i, c := range t.Texts {
		texts[i] = int64(c)
	}
	moves := make([]int64, len(t.Moves))
	for i, to := range t.Moves {
		moves[i] = int64(to)
	}
	accepts := tensor.Must(tensor.New(tensor.Bool, tensor.Shape{t.States}))
	copy(tensor.Of[uint8](accepts), t.Accepts)
	ending := tensor.Must(tensor.New(tensor.Bool, tensor.Shape{vocabulary}))
	for _, id := range ends {
		tensor.Of[uint8](ending)[id] = 1
	}
	return map[string]*tensor.Tensor{
		"moves": tensor.Must(tensor.From(tensor.Shape{len(moves)}, moves)), "texts": tensor.Must(tensor.From(tensor.Shape{vocabulary, t.Longest}, texts)),
		"accepts": accepts, "ends": ending,
	}
}
