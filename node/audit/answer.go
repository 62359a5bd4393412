package audit

import (
	"context"
	"fmt"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/node/events"
)

// Who has attested is asked on chain to show what it keeps. Questions are read
// from the chain, so a restart forgets none; answering has tasks of its own, so
// that slow fetches do not make it late.

// answers starts the answers to what this custodian is asked in a lease. One that is
// under way is not cancelled: its question goes from the chain before it has ended.
func (a *auditor) answers(ctx context.Context, l *job.Lease) {
	for _, r := range l.Questions() {
		if r.Custodian != a.env.Account.Address || r.Due == 0 {
			continue
		}
		name := fmt.Sprintf("answer %s %d %s", l.Order.ID().Short(), r.Unit, r.Seed.Short())
		a.answer.Start(ctx, name, func(ctx context.Context) error { return a.show(ctx, l, r) })
	}
}

// show answers one question about a unit, or about the order's files.
func (a *auditor) show(ctx context.Context, l *job.Lease, r *job.Question) error {
	unit := r.Unit
	l, err := a.env.Leases.Fill(ctx, l, l.AboutUnit(unit))
	if err != nil {
		return err
	}
	q, _ := l.Sample(r)
	shown, err := a.tile(ctx, l, unit, q)
	if err != nil {
		return fmt.Errorf("answer about %s: %w", job.Kept(unit), err)
	}
	m := &workv1.MsgAnswer{Custodian: a.env.Account.Address, Order: l.Order.ID().String(), Files: unit == job.OfFiles, Shown: canon.Marshal(&shown)}
	if !m.Files {
		m.Unit, m.Attempt = uint32(unit), uint32(l.Units[unit].Attempt)
	}
	err = a.env.Send(ctx, m)
	if err != nil {
		return fmt.Errorf("answer about %s: %w", job.Kept(unit), err)
	}
	a.env.Emit(events.Event{Kind: events.Answered, Order: l.Order.ID(), Unit: unit, Text: "showed the tile that was asked for"})
	return nil
}

// tile opens what a question asks for.
func (a *auditor) tile(ctx context.Context, l *job.Lease, unit int, q proof.Sample) (proof.Shown, error) {
	if q.State < 0 {
		j, err := a.env.Jobs.Get(ctx, l)
		if err != nil {
			return proof.Shown{}, err
		}
		return j.ShowRecords(ctx, q)
	}
	if q.Of > 0 {
		fragment, roots, err := a.env.States.OwnFragment(ctx, l, unit, q.State)
		if err != nil {
			return proof.Shown{}, err
		}
		return q.ShowFragment(fragment, roots)
	}
	s, err := a.env.States.Get(ctx, l, q.Root)
	if err != nil {
		return proof.Shown{}, err
	}
	return q.ShowState(s)
}
