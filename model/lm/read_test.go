package lm

import (
	"context"
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
)

// Session is one sequence of tokens, read by stages. It is one goroutine's.
type Session struct {
	stages *Stages
	read   Sequence
}

// NewSession returns a sequence without tokens.
func (m *Model) NewSession(e engine.Executor) *Session { return m.Stages(e).NewSession() }

// NewSession returns a sequence without tokens, which these stages read.
func (s *Stages) NewSession() *Session { return &Session{stages: s} }

// Len returns how many tokens there are.
func (s *Session) Len() int { return s.read.Len() }

// Append adds tokens, and returns the logits of what follows the last, Vocabulary of them. After an error the sequence may have some
// of the tokens: begin a new one.
func (s *Session) Append(ctx context.Context, tokens ...int32) (logits []float32, err error) {
	m := s.stages.model
	switch {
	case len(tokens) == 0:
		return nil, fmt.Errorf("%s: no tokens to read", m.Family)
	case len(tokens) > m.Context-s.Len():
		return nil, fmt.Errorf("%s: %d tokens after %d are more than its context of %d", m.Family, len(tokens), s.Len(), m.Context)
	}
	for part := range slices.Chunk(tokens, Chunk) {
		p := Part{Sequence: &s.read, Tokens: part}
		if tokens = tokens[len(part):]; len(tokens) == 0 {
			p.Logits = 1
		}
		out, err := s.stages.Step(ctx, []Part{p})
		if err != nil {
			return nil, err
		}
		if p.Logits > 0 {
			logits = tensor.Of[float32](out[0])
		}
	}
	return logits, nil
}
