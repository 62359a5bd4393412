// Package check re-executes replies of language models, in as few passes as there are chunks of tokens.
//
// Make a [Checker] and call [Checker.Check] with a request and the reply that somebody has given. The reply is read, and never made anew:
// the draw at each place must give the token that stands there.
//
// Invariants: a reply is right here if and only if model/lm makes it of the request, whoever made it, on what machine and in what batch. What is
// reported wrong is the first token that differs.
//
// Source: docs/adr/0069-served-models.md.
package check

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/model/lm"
)

// Verdict is what a check found.
type Verdict struct {
	Wrong int        // the first token of the reply that the request does not give; −1: there is none
	Token int32      // what it gives there instead; −1: nothing, or that is not known
	Pages canon.Hash // root of the pages of all tokens but the last, if none is wrong
}

// Checker re-executes replies of one model, one at a time.
type Checker struct {
	model   *lm.Model
	threads int

	mu      sync.Mutex
	stages  *lm.Stages
	sampler *lm.Sampler
}

// New returns a checker that computes by an executor.
func New(m *lm.Model, e engine.Executor) *Checker {
	return &Checker{model: m, threads: runtime.GOMAXPROCS(0), stages: m.Stages(e), sampler: m.NewSampler(e)}
}

// Check re-executes a reply. An error says that it has no tokens or too many, or that the check ended before its time.
func (c *Checker) Check(ctx context.Context, r *lm.Request, reply []int32) (Verdict, error) {
	if err := r.Check(c.model); err != nil {
		return Verdict{}, err
	}
	switch n := len(reply); {
	case n == 0 || n > r.Room(c.model)-len(r.Prompt):
		return Verdict{}, fmt.Errorf("a reply of %d tokens: want 1 to %d", n, r.Room(c.model)-len(r.Prompt))
	}
	// What comes after an end, and what is no token, is wrong whatever the model says.
	whole := reply
	if i := slices.IndexFunc(reply, func(id int32) bool { return slices.Contains(r.Ends, id) }); i >= 0 {
		reply = reply[:i+1]
	}
	if i := slices.IndexFunc(reply, func(id int32) bool { return id < 0 || int(id) >= c.model.Vocabulary }); i >= 0 {
		reply = reply[:i]
	}
	if len(reply) == 0 {
		return Verdict{Wrong: 0, Token: -1}, nil
	}
	v, err := c.read(ctx, r, reply)
	if err == nil && v.Wrong < 0 && len(reply) < len(whole) {
		v = Verdict{Wrong: len(reply), Token: -1}
	}
	return v, err
}

// read re-executes a reply of tokens that the model has.
func (c *Checker) read(ctx context.Context, r *lm.Request, reply []int32) (Verdict, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	draws, err := c.sampler.Begin(r)
	if err != nil {
		return Verdict{}, err
	}
	tokens := slices.Concat(r.Prompt, reply)
	q := &lm.Sequence{Capacity: len(tokens)}
	for read := tokens[:len(tokens)-1]; q.Len() < len(read); {
		at := q.Len()
		p := lm.Part{Sequence: q, Tokens: read[at:min(at+lm.Chunk, len(read))]}
		p.Logits = min(len(p.Tokens), max(0, at+len(p.Tokens)-len(r.Prompt)+1))
		logits, err := c.stages.Step(ctx, []lm.Part{p})
		if err != nil {
			return Verdict{}, err
		}
		first := at + len(p.Tokens) - p.Logits + 1 // the place of the first token that is drawn
		for i := range p.Logits {
			row, err := logits[0].Row(i)
			if err != nil {
				return Verdict{}, err
			}
			t, err := draws.Draw(ctx, row, first+i)
			if err != nil {
				return Verdict{}, err
			}
			switch last := first+i == len(tokens)-1; {
			case t.ID != tokens[first+i]:
				return Verdict{Wrong: first + i - len(r.Prompt), Token: t.ID}, nil
			case t.Reason != "" && !last: // its form is complete
				return Verdict{Wrong: first + i + 1 - len(r.Prompt), Token: -1}, nil
			}
		}
	}
	v := Verdict{Wrong: -1}
	v.Pages, err = q.PagesRoot(c.threads)
	return v, err
}
