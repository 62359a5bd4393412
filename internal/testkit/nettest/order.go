package nettest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/model/zoo"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/consume"
)

// spec is an order of two rounds of two units. Its windows are over at once:
// what a scenario needs more time for it holds up itself.
func spec() consume.Spec {
	s := consume.Default()
	p, c := &s.Problem, &s.Conditions
	p.Rounds, p.Shards, p.Steps, p.Interval, p.Batch, p.Seed = 2, 2, 4, 2, 4, 7
	p.Optimizer.Warmup = 2
	c.MaxPrice, c.Providers, c.Custodians = 100_000_000, 2, 1
	c.Expires = consume.Duration(time.Minute)
	c.UnitTimeout = consume.Duration(time.Minute) // what is held so long ends while somebody waits for it
	c.UnitWindow, c.Window = consume.Duration(100*time.Millisecond), consume.Duration(500*time.Millisecond)
	return s
}

// Terms are the conditions of the small order.
func Terms() consume.SpecConditions { return spec().Conditions }

// body is what is trained on.
var body = strings.Repeat("a stick is cut in two and each side keeps its half of the tally. ", 16)

func draft(ctx context.Context, s consume.Spec) (*consume.Draft, error) {
	gpt := zoo.GPT{Vocab: 24, Context: 8, Width: 8, Layers: 1, Heads: 2, Seed: 3}
	g, err := gpt.Graph(s.Problem.Batch)
	if err != nil {
		return nil, err
	}
	return consume.FromParts(ctx, s, consume.Origin{Model: g}, body, cpu.New(1))
}

// Order returns the order as the consumer would sign it, without posting it. Its store has the files.
func (n *Network) Order() job.Order {
	n.t.Helper()
	o, err := n.Draft.Order(consume.BuyerOf(n.Consumer.Env))
	if err == nil {
		err = consume.Keep(n.Consumer.Env, &o, n.Draft.Body())
	}
	if err != nil {
		n.t.Fatal(err)
	}
	return o
}

// Post posts the network's order, changed by bend, and serves its files from
// then on.
func (n *Network) Post(bend func(*job.Order)) canon.Hash {
	n.t.Helper()
	o := n.Order()
	if bend != nil {
		bend(&o)
	}
	for _, f := range o.Problem.Files { // a bent order may name others
		ref, err := blobs.RefOf(f)
		if err == nil {
			err = n.Consumer.Env.Store.Pin(blobs.Pin(o.ID()), ref)
		}
		if err != nil {
			n.t.Fatal(err)
		}
	}
	id, err := consume.Post(n.ctx, n.Consumer.Env, &o)
	if err != nil {
		n.t.Fatal(err)
	}
	n.Serve()
	return id
}

// Serve hands over the files of the consumer's orders from now on.
func (n *Network) Serve() {
	n.serve.Do(func() { go func() { _ = consume.Serve(n.ctx, n.Consumer.Env) }() })
}

// Lease waits until an order's lease is as wanted.
func (n *Network) Lease(id canon.Hash, what string, want func(*job.Lease) bool) *job.Lease {
	n.t.Helper()
	var last consume.Progress
	err := n.EachBlock(func(client.Block) (bool, error) {
		p, err := consume.Look(n.ctx, n.Consumer.Env, id)
		if err != nil {
			return false, err
		}
		last = p
		switch {
		case p.Lease != nil && want(p.Lease):
			return false, nil
		case p.Ended():
			return false, errors.New("the order ended before")
		}
		return true, nil
	})
	if err != nil {
		n.t.Fatalf("waiting for %s: %v\n%s", what, err, describe(last.Lease))
	}
	if err := n.synced(n.ctx); err != nil {
		n.t.Fatalf("waiting for %s on every node: %v", what, err)
	}
	whole, err := n.Consumer.Env.Leases.Fill(n.ctx, last.Lease, last.Lease.Everything())
	if err != nil {
		n.t.Fatal(err)
	}
	return whole
}

// Settle waits until an order is settled, and checks everything.
func (n *Network) Settle(id canon.Hash) *job.Lease {
	n.t.Helper()
	l := n.Lease(id, "settlement", func(l *job.Lease) bool { return l.Phase == job.Settled })
	if err := n.Check(l); err != nil {
		n.t.Fatalf("%v\n%s", err, describe(l))
	}
	return l
}

func describe(l *job.Lease) string {
	if l == nil {
		return "there is no lease"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "lease %v, %s, matched at %d: round %d, lead %d %+v, due since %d, barred %v, disputes %+v, ledger %+v\n",
		l.Phase, l.Reason, l.MatchedAt, l.Round, l.LeadIndex, l.Leads, l.DueSince, l.Barred, l.Disputes, l.Ledger)
	for i, u := range l.Units {
		fmt.Fprintf(&b, "unit %d: %v, attempt %d by %s, attested %v, audits %+v, due %d, window until %d, held until %d\n", i, u.Status, u.Attempt, u.Provider, u.Attested, u.Audits, u.Due, u.WindowEnd, u.HeldUntil)
	}
	return b.String()
}
