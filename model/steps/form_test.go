package steps_test

import (
	"slices"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/internal/testkit/lmtest"
	"github.com/tally-network/tally/model/grammar/jsonschema"
	"github.com/tally-network/tally/model/lm"
)

// No step judges a token that is bound to a form, so nobody stakes anything on one; keys and values can be disputed all the same, whatever the
// tokens are.
func TestRepliesThatAreBoundToAForm(t *testing.T) {
	m := lmtest.Bind(open(t, "llama"))
	x := table(t, m)
	form, err := jsonschema.Compile([]byte(`{"type":"string"}`))
	if err != nil {
		t.Fatal(err)
	}
	q := &lm.Request{Prompt: []int32{8, 9, 10}, MaxTokens: 200, Seed: 5, Sampling: lm.Sampling{Temperature: 1}, Form: form}
	right := func(s *served, w dispute.SequenceWitness) dispute.Side {
		g, err := dispute.Open(dispute.Claim{Sequence: s.sequence()}, dispute.DefaultRules, dispute.Opening{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		side, err := dispute.Right(&g, dispute.WitnessOf(w))
		if err != nil {
			t.Fatal(err)
		}
		return side
	}
	bent := *serve(t, x, m, q)
	bent.reply = slices.Clone(bent.reply)
	bent.reply[len(bent.reply)-1] = 71 - bent.reply[len(bent.reply)-1]%40 // the last one: pages stay true
	if side := right(&bent, bent.witness(t, cpu.New(1))); side != dispute.Defender {
		t.Errorf("a token of a form would be disputed: the witness bears out the %v", side)
	}
	garbage := &served{table: x, model: m, request: q, reply: slices.Repeat([]int32{40}, 180)} // no string begins so
	w := garbage.witness(t, cpu.New(1))
	chunks, _, err := w.Pages()
	if err != nil {
		t.Fatal(err)
	}
	garbage.pages = canon.Root(chunks)
	if side := right(garbage, w); side != dispute.Defender {
		t.Errorf("the witness bears out the %v", side)
	}
	garbage.pages = canon.Hash{1}
	if side := right(garbage, w); side != dispute.Challenger {
		t.Errorf("of false pages the witness bears out the %v", side)
	}
}
