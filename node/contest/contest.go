// Package contest disputes replies of language models on the chain, and defends them.
//
// Make a [Book] by [New] for an account, call [Book.Block] on every block and [Book.Open] with the proof of a reply that is wrong. What a provider
// signs for it keeps in the same [tabs.Made] before.
//
// Invariants: what a game may be about is on the disk before it begins, and is computed again when a move is due. So a process can be killed at any moment.
//
// Source: docs/adr/0071-disputes-of-replies.md; core/dispute has the game, model/steps what it is played by.
package contest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/model/steps"
	"github.com/tally-network/tally/node/disputer"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/tabs"
)

// Model is a language model whose replies can be computed again here.
type Model interface {
	Disputed() dispute.Model                                                                    // what games know of it
	Account(ctx context.Context, r *lm.Request, reply []int32) (dispute.SequenceWitness, error) // what it computes ends with ctx
}

// model is one that is open.
type model struct {
	disputed dispute.Model
	weights  *lm.Model
	exec     engine.Executor
	threads  int

	once  sync.Once
	table *steps.Table
	err   error
}

// NewModel returns a model that an executor computes by so many threads, and what games know of it.
func NewModel(disputed dispute.Model, weights *lm.Model, e engine.Executor, threads int) Model {
	return &model{disputed: disputed, weights: weights, exec: e, threads: threads}
}

// Disputed implements Model.
func (m *model) Disputed() dispute.Model { return m.disputed }

// Account implements Model. The first one makes the table of steps.
func (m *model) Account(ctx context.Context, r *lm.Request, reply []int32) (dispute.SequenceWitness, error) {
	m.once.Do(func() { m.table, m.err = steps.New(m.weights, m.weights.WeightRoots(m.threads), m.threads) })
	if m.err != nil {
		return nil, m.err
	}
	return m.table.Witness(ctx, m.exec, m.threads, r, reply)
}

// Book holds the disputes of an account.
type Book struct {
	made   tabs.Made
	models func(root canon.Hash) Model // nil: it is not here
	player *disputer.Player
}

// New returns the disputes of an env's account about replies that are kept in made. Its moves are made until ctx is done.
func New(ctx context.Context, env *role.Env, made tabs.Made, models func(root canon.Hash) Model) *Book {
	b := &Book{made: made, models: models}
	b.player = disputer.OfReplies(ctx, env, b)
	return b
}

// Account implements [disputer.Replies].
func (b *Book) Account(ctx context.Context, session canon.Hash, s *dispute.Sequence) (dispute.SequenceWitness, error) {
	m, err := b.model(s.Model.Root())
	if err != nil {
		return nil, err
	}
	r, reply, err := b.made.Get(session, s.Request, s.Tokens)
	if err != nil {
		return nil, err
	}
	return m.Account(ctx, r, reply)
}

func (b *Book) model(root canon.Hash) (Model, error) {
	if m := b.models(root); m != nil {
		return m, nil
	}
	return nil, fmt.Errorf("model %s is not here: bring it back, or disputes about its replies are lost", root)
}

// Open disputes a reply, if by what is computed here the dispute will be won.
func (b *Book) Open(ctx context.Context, p *tabs.Proof) error {
	m, err := b.model(p.Receipt.Model)
	if err != nil {
		return err
	}
	if err := loses(ctx, m, p); err != nil {
		return err
	}
	if err := b.made.Keep(p.Receipt.Session, &p.Request, p.Reply); err != nil {
		return err
	}
	disputed := m.Disputed()
	return b.player.Dispute(ctx, &p.Receipt, p.Signature, &disputed)
}

// loses returns an error unless the provider will lose a dispute about a reply.
func loses(ctx context.Context, m Model, p *tabs.Proof) error {
	c, err := p.Receipt.Claim(&p.Terms, m.Disputed())
	if err != nil {
		return err
	}
	g, err := dispute.Open(c, dispute.DefaultRules, dispute.Opening{}, 0)
	if err != nil {
		return err
	}
	w, err := m.Account(ctx, &p.Request, p.Reply)
	if err != nil {
		return err
	}
	side, err := dispute.Right(&g, dispute.WitnessOf(w))
	if err == nil && side != dispute.Challenger {
		err = errors.New("a dispute would be lost: no step of the reply is wrong")
	}
	return err
}

// Block makes the moves that are due, in the background.
func (b *Book) Block(ctx context.Context) error { return b.player.Block(ctx) }

// Wait waits until no move is being made, after the context has ended.
func (b *Book) Wait() { b.player.Wait() }
