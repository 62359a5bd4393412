package lm

import (
	"context"
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine"
)

// Chunk is how many tokens are read at once, at most. It changes no bit.
const Chunk = 128

// Session is a sequence of tokens, with the keys and values of each. It is one goroutine's.
type Session struct {
	model *Model
	exec  engine.Executor
	past  int
	kept  []*tensor.Tensor // keys and values of layer after layer, [room, Shared, HeadSize], of which the first past are in use
	plans map[shape]engine.Runner
}

// shape is what programs of one plan have in common; they differ in extents alone.
type shape struct{ one, first bool }

// NewSession returns a sequence without tokens.
func (m *Model) NewSession(e engine.Executor) *Session {
	return &Session{model: m, exec: e, kept: make([]*tensor.Tensor, 2*m.Layers), plans: map[shape]engine.Runner{}}
}

// Len returns how many tokens there are.
func (s *Session) Len() int { return s.past }

// Append adds tokens, and returns the logits of what follows the last, Vocabulary of them. After an error the sequence may have some
// of the tokens: begin a new one.
func (s *Session) Append(ctx context.Context, tokens ...int64) (logits []float32, err error) {
	switch {
	case len(tokens) == 0:
		return nil, fmt.Errorf("%s: no tokens to read", s.model.Family)
	case len(tokens) > s.model.Context-s.past:
		return nil, fmt.Errorf("%s: %d tokens after %d are more than its context of %d", s.model.Family, len(tokens), s.past, s.model.Context)
	}
	for _, t := range tokens {
		if t < 0 || t >= int64(s.model.Vocabulary) {
			return nil, fmt.Errorf("%s: token %d: want 0 to %d", s.model.Family, t, s.model.Vocabulary-1)
		}
	}
	for part := range slices.Chunk(tokens, Chunk) {
		if logits, err = s.read(ctx, part); err != nil {
			return nil, err
		}
	}
	return logits, nil
}

// read adds a chunk of tokens.
func (s *Session) read(ctx context.Context, tokens []int64) ([]float32, error) {
	rows := len(tokens)
	r, p, err := s.runner(rows)
	if err != nil {
		return nil, err
	}
	in := map[string]*tensor.Tensor{}
	if in["tokens"], err = tensor.From(tensor.Shape{rows}, tokens); err != nil {
		return nil, err
	}
	for i := range s.model.Layers {
		for j, name := range []string{"keys", "values"} {
			if s.past == 0 {
				continue
			}
			in[fmt.Sprintf("%s.%d", name, i)], err = s.kept[2*i+j].Part(0, tensor.Float32, s.keys(s.past))
			if err != nil {
				return nil, err
			}
		}
	}
	start := &graph.State{Slots: p.Slots, Tensors: make([]*tensor.Tensor, len(p.Slots))}
	for i, slot := range p.Slots {
		if start.Tensors[i] = in[slot.Name]; start.Tensors[i] == nil {
			if start.Tensors[i], err = tensor.New(slot.Type, slot.Shape); err != nil {
				return nil, err
			}
		}
	}
	end, err := r.Run(ctx, graph.Inputs{States: []*graph.State{start}}, nil)
	if err != nil {
		return nil, err
	}
	for i := range s.model.Layers {
		for j, name := range []string{"keys", "values"} {
			if err := s.keep(2*i+j, end.Find(fmt.Sprintf("new_%s.%d", name, i))); err != nil {
				return nil, err
			}
		}
	}
	s.past += rows
	logits := tensor.Of[float32](end.Find("logits"))
	return logits[(rows-1)*s.model.Vocabulary:], nil
}

func (s *Session) keys(tokens int) tensor.Shape {
	return tensor.Shape{tokens, s.model.Shared, s.model.HeadSize}
}

// keep appends keys or values.
func (s *Session) keep(at int, x *tensor.Tensor) error {
	need := s.past + x.Shape[0]
	if old := s.kept[at]; old == nil || old.Shape[0] < need {
		room, err := tensor.New(tensor.Float32, s.keys(min(max(2*s.past, need, Chunk), s.model.Context)))
		if err != nil {
			return err
		}
		if old != nil {
			copy(room.Bytes(), old.Bytes()[:s.past*s.token()])
		}
		s.kept[at] = room
	}
	copy(s.kept[at].Bytes()[s.past*s.token():], x.Bytes())
	return nil
}

// token returns the bytes of a token's keys in a layer.
func (s *Session) token() int { return s.keys(1).Elements() * tensor.Float32.Size() }

// runner returns what reads rows tokens now, and its program. A plan serves all lengths, for programs of a shape differ in extents
// alone. It is made for the most rows that there may be, and gives the same bits for fewer.
func (s *Session) runner(rows int) (engine.Runner, *graph.Program, error) {
	p, err := s.model.program(rows, s.past)
	if err != nil {
		return nil, nil, err
	}
	of := shape{rows == 1, s.past == 0}
	if s.plans[of] == nil {
		like := p
		if !of.one && s.past+Chunk <= s.model.Context {
			if like, err = s.model.program(Chunk, s.past); err != nil {
				return nil, nil, err
			}
		}
		if s.plans[of], err = s.exec.Prepare(like); err != nil {
			return nil, nil, err
		}
	}
	if r, ok := s.plans[of].(engine.Resizer); ok {
		if r, err := r.Resize(p); err == nil {
			return r, p, nil
		}
	}
	r, err := s.exec.Prepare(p)
	return r, p, err
}

// program lowers the graph of rows tokens after past others.
func (m *Model) program(rows, past int) (*graph.Program, error) {
	g, err := m.Graph(rows, past)
	if err != nil {
		return nil, err
	}
	typed, err := op.Infer(g, lower.FP32)
	if err != nil {
		return nil, err
	}
	return typed.Function()
}
