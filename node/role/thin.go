package role

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/engine/merkle"
	"github.com/tally-network/tally/store"
)

// Policy says what of a unit's checkpoints stays here once the unit is accepted.
// Custodians must be able to answer for all of them until the lease ends; others may
// save room, for what is gone can be had from custodians or computed again.
type Policy string

// The policies.
const (
	KeepAll   Policy = "keep"      // every checkpoint
	Thin      Policy = "thin"      // every fourth, and the last
	Derive    Policy = "derive"    // the last
	fragments Policy = "fragments" // none: of custodians that keep fragments of them
)

// Policies lists them for people.
var Policies = []Policy{KeepAll, Thin, Derive}

// keeps reports whether checkpoint i, of those from 0 to last, stays.
func (p Policy) keeps(i, last int) bool {
	switch p {
	case Thin:
		return i%4 == 0 || i == last
	case Derive:
		return i == 0 || i == last
	case fragments:
		return i == 0
	}
	return true
}

// policy returns what of a unit's checkpoints stays here: all until the unit is
// accepted, but none with a custodian where they are kept in fragments, as soon as it has
// nothing left to audit and has made its own, or can make none any more.
func (k *Kit) policy(l *job.Lease, unit int) Policy {
	u := &l.Units[unit]
	if l.Order.Fragments().Cuts() {
		me := k.Account.Address
		auditing := slices.ContainsFunc(u.Audits, func(a job.Audit) bool { return a.Auditor == me && !a.Done && !a.Forfeit })
		custodian := slices.ContainsFunc(u.Attested, func(a job.Attestation) bool { return a.Custodian == me && !a.Failed })
		done := u.Keeps(me) || custodian && u.Status == job.Accepted && !l.MayAttest(unit, me)
		if done && !auditing {
			return fragments
		}
		if done || custodian {
			return KeepAll
		}
	}
	if u.Status == job.Accepted {
		return k.Checkpoints
	}
	return KeepAll
}

// thinUnits lets go of the checkpoints of some units that are not kept here, and reports
// whether there were any.
func (k *Kit) thinUnits(ctx context.Context, l *job.Lease, units []int) (some bool, err error) {
	if l, err = k.Fill(ctx, l, job.Part{Units: units}); err != nil {
		return false, err
	}
	for _, i := range units {
		more, err := k.thin(l, l.Units[i].Receipt, k.policy(l, i))
		if err != nil {
			return some, err
		}
		some = some || more
	}
	return some, nil
}

// thin lets go of the checkpoints of a unit that a policy does not keep, and reports
// whether there were any.
func (k *Kit) thin(l *job.Lease, r *job.Receipt, policy Policy) (some bool, err error) {
	var gone []store.Ref
	for i, root := range r.Checkpoints {
		if policy.keeps(i, len(r.Checkpoints)-1) {
			continue
		}
		if ref, ok := k.noted(l.Order.ID(), root); ok && k.Store.Has(ref) {
			gone = append(gone, ref)
		}
	}
	if len(gone) == 0 {
		return false, nil
	}
	return true, k.Store.Unpin(Pin(l.Order.ID()), gone...)
}

// derive computes a checkpoint of a unit again, from the last one before it that
// is here or the start of the unit's round.
func (k *Kit) derive(ctx context.Context, l *job.Lease, r *job.Receipt, root canon.Hash) (*graph.State, error) {
	j, err := k.Work(ctx, l)
	if err != nil {
		return nil, err
	}
	if r.OnlyEnd() {
		if l, err = k.Fill(ctx, l, l.AboutUnit(r.Unit)); err != nil {
			return nil, err
		}
		r = l.Units[r.Unit].Receipt
	}
	p, id := &l.Order.Problem, l.Order.ID()
	to := r.IndexOf(root, p.Segments())
	if to <= 0 {
		return nil, fmt.Errorf("state %v is no checkpoint of unit %d that follows from another", root.Short(), r.Unit)
	}
	from := to - 1
	for ; from > 0; from-- {
		if ref, ok := k.noted(id, r.Checkpoints[from]); ok && k.Store.Has(ref) {
			break
		}
	}
	// Never by deriving: receipts could lie in a circle.
	s, err := k.findState(ctx, l, j, r.Checkpoints[from])
	if err != nil {
		s, err = k.remerge(ctx, l, j, r.Checkpoints[from], err)
	}
	if err != nil {
		return nil, err
	}
	s, err = j.UnitOf(p, r.Unit).Play(ctx, s, from*p.Interval, min(to*p.Interval, p.Steps), nil)
	if err != nil {
		return nil, err
	}
	if got, err := merkle.StateRoot(s, k.Threads); err != nil || got != root {
		return nil, errors.Join(fmt.Errorf("checkpoint %d of unit %d does not follow from checkpoint %d", to, r.Unit, from), err)
	}
	_, _, err = k.KeepState(id, s)
	return s, err
}
