package provide

import (
	"context"
	"crypto/ed25519"
	"fmt"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	"github.com/tally-network/tally/engine/merkle"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/node/events"
	"github.com/tally-network/tally/node/leases"
	"github.com/tally-network/tally/node/replay"
)

// replica starts what is to be done about a unit in which this provider has a place: it computes it
// and commits, shows its result once all have committed, and disputes others that differ.
func (p *provider) replica(ctx context.Context, l *job.Lease, i int, wanted map[string]bool) {
	u, me := &l.Units[i], p.env.Account.Address
	r := u.Replica(me)
	if r == nil || u.Status != job.Assigned {
		return
	}
	name := leases.AttemptName(l.Order.ID(), i, u.Attempt)
	wanted[name] = true
	if r.Commit.IsZero() || u.Sealed && r.Result == 0 {
		p.units.Start(ctx, name, func(ctx context.Context) error { return p.compute(ctx, l, i) })
	}
	for _, t := range l.Differs(i, me) {
		if l.Disputed(me, t, u.Attempt) {
			continue
		}
		p.sends.Start(ctx, fmt.Sprintf("%v of %s", t, name), func(ctx context.Context) error {
			_, err := p.player.CheckAttempt(ctx, l, t, u.Attempt)
			return err
		})
	}
}

// play computes a segment, and returns the root of the state within it that replicas commit to.
func (p *provider) play(ctx context.Context, l *job.Lease, unit replay.Unit, s *state, at, to int) (end *state, inner canon.Hash, err error) {
	i := l.Unit(unit.Round, unit.Shard)
	after := p.progress(l.Order.ID(), i)
	if l.Order.Conditions.Replicas > 0 {
		if n := l.InnerStep(i, at/l.Order.Problem.Interval); n > 0 {
			if s, err = unit.Play(ctx, s, at, at+n, after); err != nil {
				return nil, inner, err
			}
			at += n
			if inner, err = merkle.StateRoot(s, p.env.States.Threads); err != nil {
				return nil, inner, err
			}
		}
	}
	end, err = unit.Play(ctx, s, at, to, after)
	return end, inner, err
}

// answer commits to a result, or reveals it if this provider has committed already.
func (p *provider) answer(ctx context.Context, l *job.Lease, r job.Receipt, done []checkpoint, n notes) error {
	subject := canon.Sum(canon.DomainCommit, r.Order[:], fmt.Appendf(nil, "%d %d", r.Unit, r.Attempt))
	reveal := job.Reveal{
		Receipt: r, Signature: ed25519.Sign(p.env.Keys.Peer, r.SignBytes()),
		Salt: canon.Sum(canon.DomainCommit, ed25519.Sign(p.env.Keys.Peer, subject[:])), // nobody else can make it, and a restart makes the same
	}
	if l.Order.Problem.Interval > 1 {
		for _, c := range done {
			reveal.Inner = append(reveal.Inner, c.Inner)
		}
	}
	if l.Units[r.Unit].Replica(r.Provider).Commit.IsZero() {
		hash := proof.Commitment(r.ID(), reveal.Inner, reveal.Salt)
		err := p.env.Send(ctx, &workv1.MsgCommit{Provider: r.Provider, Order: r.Order.String(), Unit: uint32(r.Unit), Attempt: uint32(r.Attempt), Hash: hash[:]})
		if err != nil {
			return fmt.Errorf("commit to the result of unit %d: %w", r.Unit, err)
		}
		return nil
	}
	if err := p.env.Send(ctx, wire.RevealToProto(&reveal)); err != nil {
		return fmt.Errorf("reveal the result of unit %d: %w", r.Unit, err)
	}
	p.env.Emit(events.Event{Kind: events.Posted, Order: r.Order, Unit: r.Unit, Text: "result " + r.ID().Short()})
	return n.remove()
}
