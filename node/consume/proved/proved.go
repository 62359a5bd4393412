// Package proved reads what a settled order leaves to one that goes on from it, out of its proof.
//
// Call [Read], and [Order.Suits] before anything is made for it.
//
// Invariant: nobody needs to be believed for what it holds. The proof binds the order, its files and the state in which it ended.
//
// Source: docs/spec/lease.md; docs/adr/0073-training-that-goes-on.md.
package proved

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/format/bundle"
	"github.com/tally-network/tally/format/schema"
	"github.com/tally-network/tally/node/consume/tokens"
	"github.com/tally-network/tally/node/evidence"
	"github.com/tally-network/tally/node/replay"
)

// Order is a settled order of training.
type Order struct {
	Parent  replay.Parent
	Model   *graph.Graph
	Teacher string // output of the model that it learnt from; "": none
	Loss    string
	Output  string // of the model, that the loss read

	Tokens    *tokens.Tokenizer // of its texts; nil if it has none
	Tokenizer []byte            // tokenizer.json; nil if it has none
	Schema    *schema.Schema    // of its data; nil of a text
}

// Read reads the proof of an order, which has size bytes. The chain takes an order that goes on only if it knows the parent by
// its id, which binds all files. It must have settled the parent in the state that the new order goes on from.
func Read(ctx context.Context, f io.ReaderAt, size int64, exec engine.Executor) (o Order, err error) {
	if !bundle.Begins(f) {
		return o, errors.New("it is no proof bundle: name the proof.bundle of an order, which tally train --wait or tally order watch writes beside the model")
	}
	p, err := evidence.Check(ctx, f, size, evidence.Anybody, exec)
	if err != nil {
		return o, err
	}
	if o, err = Of(&p.Lease.Order, p.Job, p.File); err != nil {
		return o, err
	}
	o.Parent.Final, err = p.Final()
	return o, err
}

// Of returns what is left by an order and its work, but for the state in which it ended.
func Of(order *job.Order, work *replay.Job, file func(job.File) ([]byte, error)) (o Order, err error) {
	if order.Problem.Kind != job.Training || work == nil {
		return o, errors.New("its order trained nothing that its proof shows: name the proof of a training order")
	}
	r := &work.Recipe
	o = Order{Parent: replay.Parent{Order: order}, Model: work.Model, Teacher: r.Teacher, Loss: r.Loss, Output: r.Output}
	if f, ok := order.Problem.File(replay.RoleTokenizer); ok {
		b, err := file(f)
		if err != nil {
			return o, err
		}
		if o.Tokens, err = tokens.Read(b); err != nil {
			return o, err
		}
		if o.Tokens.Characters == nil {
			o.Tokenizer = b
		}
	}
	f, ok := order.Problem.File(replay.RoleSchema)
	if !ok {
		return o, nil
	}
	b, err := file(f)
	if err != nil {
		return o, err
	}
	known, err := schema.Read(bytes.NewReader(b))
	o.Schema = &known
	return o, err
}

// Suits returns an error unless the order can go on with data, or else with a text.
func (o *Order) Suits(data bool) error {
	switch {
	case !data && o.Tokens == nil:
		return errors.New("its order trained on other data than a text: name problem.data in place of problem.text")
	case data && o.Schema == nil && o.Tokenizer == nil:
		return errors.New("its order trained on the characters of a text: name problem.text in place of problem.data")
	}
	return nil
}
