package lm

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/model/grammar"
)

// Forms binds replies of a model to forms. Several goroutines may use it.
type Forms struct {
	words func() *grammar.Vocabulary

	mu      sync.Mutex
	indices map[canon.Hash]*grammar.Index
	used    []canon.Hash // the last used last
}

// maxForms is how many forms a model keeps over its tokens: those of requests that are under way, and of some that come again. Each takes up
// to 20 MB.
const maxForms = 8

// NewForms returns what binds replies of a model whose tokens are words. It is asked for them when the first reply is bound.
func NewForms(words func() *grammar.Vocabulary) *Forms {
	return &Forms{words: sync.OnceValue(words), indices: map[canon.Hash]*grammar.Index{}}
}

// SetForms sets what binds the model's replies. Without it, requests that have a form are refused.
func (m *Model) SetForms(f *Forms) { m.forms = f }

// index returns a form over the model's tokens.
func (f *Forms) index(form *grammar.Automaton) (*grammar.Index, error) {
	if f == nil {
		return nil, errors.New("a reply cannot be bound to a form: what the model's tokens add to a text is not known")
	}
	id := form.ID()
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.indices[id]
	if x == nil {
		var err error
		if x, err = grammar.NewIndex(form, f.words()); err != nil {
			return nil, err
		}
		f.indices[id] = x
	}
	f.used = append(slices.DeleteFunc(f.used, func(h canon.Hash) bool { return h == id }), id)
	if len(f.used) > maxForms {
		delete(f.indices, f.used[0])
		f.used = f.used[1:]
	}
	return x, nil
}

// Follow returns where a reply to r begins. It is an error if no reply can have its form.
func (f *Forms) Follow(r *Request) (*Follower, error) {
	if r.Form == nil {
		return &Follower{ends: r.Ends}, nil
	}
	x, err := f.index(r.Form)
	if err != nil {
		return nil, err
	}
	return newFollower(x, r)
}

// Follower follows a reply, and knows when it is over.
type Follower struct {
	ends  []int32
	form  *grammar.Index // nil: any reply will do
	state int
}

// newFollower returns a follower after those tokens of a reply that were made already.
func newFollower(x *grammar.Index, r *Request) (*Follower, error) {
	f := &Follower{ends: r.Ends, form: x}
	for i, id := range r.Prompt[len(r.Prompt)-r.Made:] {
		if over, err := f.Take(id); err != nil || over {
			return nil, fmt.Errorf("token %d of the reply, %d, was made already, and the form does not go on with or after it", i, id)
		}
	}
	if x.Final(f.state) {
		return nil, errors.New("the form is of the empty text alone: ask for no reply")
	}
	return f, nil
}

// Take takes the next token of the reply, and reports whether it is the last: it ends replies, or nothing may come after it. The error says that
// it may not come.
func (f *Follower) Take(id int32) (over bool, err error) {
	ends := slices.Contains(f.ends, id)
	if f.form == nil {
		return ends, nil
	}
	if ends {
		if !f.form.Accepts(f.state) {
			return false, fmt.Errorf("token %d ends a reply that does not have its form yet", id)
		}
		return true, nil
	}
	to, ok := f.form.Next(f.state, id)
	if !ok {
		return false, fmt.Errorf("token %d is none that the form goes on with", id)
	}
	f.state = to
	return f.form.Final(to), nil
}

// mask says of each token whether it may come next.
func (f *Follower) mask(mask []byte) {
	n := copy(mask, f.form.Mask(f.state))
	clear(mask[n:]) // weights may have more rows than there are tokens
	accepts := byte(0)
	if f.form.Accepts(f.state) {
		accepts = 1
	}
	for _, id := range f.ends {
		mask[id] = accepts
	}
}

// formShape is what of a form decides the graph: how large its tables are.
type formShape struct{ states, longest int }

// mask writes which tokens may come next, out of tables. Its inputs are
//
//	state    int64 [1]
//	moves    int64 [states · Symbols], accepts  bool [states]: as [grammar.Tables] have them
//	texts    int64 [vocabulary, longest]
//	ends     bool [vocabulary]: the tokens that end replies
//
// The state after each token is found byte by byte, for all tokens at once. It is an output, next, int64 [1], of the token that is drawn.
func (s formShape) mask(b *graph.Builder, vocabulary int) (mask, after string) {
	state := b.Input("state", tensor.Int64, tensor.Shape{1})
	moves := b.Input("moves", tensor.Int64, tensor.Shape{s.states * grammar.Symbols})
	texts := b.Input("texts", tensor.Int64, tensor.Shape{vocabulary, s.longest})
	accepts := b.Input("accepts", tensor.Bool, tensor.Shape{s.states})
	ends := b.Input("ends", tensor.Bool, tensor.Shape{vocabulary})
	width := b.Const(tensor.Scalar(int64(grammar.Symbols)))
	after = b.Op("Expand", state, b.Ints(vocabulary))
	for i := range s.longest {
		symbol := b.Op("Reshape", b.Op("Slice", texts, b.Ints(i), b.Ints(i+1), b.Ints(1)), b.Ints(vocabulary))
		after = b.Op("Gather", moves, b.Op("Add", b.Op("Mul", after, width), symbol))
	}
	goesOn := b.Op("Less", after, b.Const(tensor.Scalar(int64(s.states-1)))) // the last state stands for none
	return b.Op("Where", ends, b.Op("Gather", accepts, state), goesOn), after
}
