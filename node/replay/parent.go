package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/engine"
)

// Parent is a settled order that training goes on from, and the state that it ended in. The new order binds both, by
// id and root. So whoever loads it derives the first state, and need not believe who posted it.
type Parent struct {
	Order *job.Order
	Final *graph.State
}

// maxParent bounds the file of an order that is continued, in bytes.
const maxParent = 4 << 20

// parent reads what the order continues.
func (l *loader) parent() (*Parent, error) {
	if f, _ := l.File(RoleParent); f.Size > maxParent {
		return nil, fmt.Errorf("parent: its file has %d bytes, an order at most %d", f.Size, maxParent)
	}
	b, err := l.file(RoleParent)
	if err != nil {
		return nil, err
	}
	p := &Parent{Order: &job.Order{}}
	if err := canon.Unmarshal(b, p.Order); err != nil {
		return nil, fmt.Errorf("parent: %w", err)
	}
	if id := p.Order.ID(); id != l.Parent.Order {
		return nil, fmt.Errorf("the parent's file is order %v, the order continues %v", id.Short(), l.Parent.Order.Short())
	}
	p.Final, err = l.start(l.Parent.Final)
	return p, err
}

// earlier returns the training that the parent ordered. Records of a text have so many words.
func (p *Parent) earlier(words int) (*train.Earlier, error) {
	q := &p.Order.Problem
	if err := p.Order.Check(); err != nil {
		return nil, err
	}
	if q.Kind != job.Training {
		return nil, fmt.Errorf("it is a %s, and trained nothing", q.Kind)
	}
	e := &train.Earlier{Step: q.Step, Last: p.Final}
	if err := canon.Unmarshal(q.Recipe, &e.Recipe); err != nil {
		return nil, fmt.Errorf("recipe: %w", err)
	}
	if e.Recipe.Batch != q.Batch { // before anything grows with it
		return nil, fmt.Errorf("its recipe has batches of %d, it of %d", e.Recipe.Batch, q.Batch)
	}
	if len(e.Recipe.Fields) > 0 {
		words = e.Recipe.Fields.Words()
	}
	e.Records = tensor.Shape{q.Records, words}
	return e, e.Recipe.Profile.UnmarshalText([]byte(q.Profile))
}

// begin makes training of the inputs, from where the parent ended if there is one. Then the model has the
// weights of that state, and nothing else is kept of the parent.
func (in *Inputs) begin(ctx context.Context, exec engine.Executor) (*train.Training, error) {
	if in.Parent == nil {
		return train.New(in.Model, in.Recipe, in.Data.Shape)
	}
	if in.Start != nil {
		return nil, errors.New("training goes on from a parent or starts from a state, not both")
	}
	if len(in.Data.Shape) != 2 {
		return nil, fmt.Errorf("training records have shape %v, but should have [records words]", in.Data.Shape)
	}
	e, err := in.Parent.earlier(in.Data.Shape[1])
	if err != nil {
		return nil, fmt.Errorf("parent: %w", err)
	}
	in.Model, err = e.Model(in.Model, in.Recipe, func(p *graph.Program, s *graph.State) (*graph.State, error) {
		ready, err := prepare(p, exec)
		if err != nil {
			return nil, err
		}
		return local(func() (*graph.State, error) {
			return ready.Runner.Run(ctx, graph.Inputs{States: []*graph.State{s}}, nil)
		})
	})
	if err != nil {
		return nil, fmt.Errorf("parent %v: %w", in.Parent.Order.ID().Short(), err)
	}
	t, err := train.New(in.Model, in.Recipe, in.Data.Shape)
	if err != nil {
		return nil, err
	}
	in.Parent, t.Start = nil, e.Start(t.Start, in.Recipe)
	return t, nil
}

// Continued says what an order goes on from.
type Continued struct {
	Parent  string `json:"parent,omitempty"`      // a settled order
	Root    string `json:"parent_root,omitempty"` // of the state in which that ended
	Carried string `json:"carried,omitempty"`     // what carries over: the whole state, or weights by name
}

// ContinuedOf returns what a problem goes on from, which is nothing for most.
func ContinuedOf(p *job.Problem) (c Continued) {
	if p.Parent == (job.Parent{}) {
		return c
	}
	c = Continued{p.Parent.Order.String(), p.Parent.Final.String(), "weights"}
	if p.Start == p.Parent.Final {
		c.Carried = "state"
	}
	return c
}

// String says it to people.
func (c Continued) String() string {
	what := "its weights carry over by name, and all else begins afresh"
	if c.Carried == "state" {
		what = "all of it carries over, the optimizer's part included"
	}
	return fmt.Sprintf("order %s from its last state %s: %s", c.Parent, c.Root, what)
}
