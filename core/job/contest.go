package job

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
)

// Claim returns what the work named by t asserts, for a dispute about it.
func (l *Lease) Claim(t Target) (dispute.Claim, error) {
	p := &l.Order.Problem
	if t.Merge {
		if t.Index < 0 || t.Index >= l.Round {
			return dispute.Claim{}, fmt.Errorf("round %d is not merged", t.Index)
		}
		m := l.Merges[t.Index]
		return dispute.Claim{Program: p.Merge, Inputs: m.Inputs, Steps: 1, End: m.Root}, nil
	}
	if t.Index < 0 || t.Index >= len(l.Units) || l.Units[t.Index].Receipt == nil {
		return dispute.Claim{}, fmt.Errorf("unit %d has no receipt", t.Index)
	}
	r := l.Units[t.Index].Receipt
	return dispute.Claim{
		Program: p.Step, Inputs: []canon.Hash{r.Start}, Data: p.Data,
		Batch: dispute.Batch{Order: p.Order(), Shard: t.Index % p.Shards, First: t.Index / p.Shards * p.Steps},
		Steps: p.Steps, Interval: p.Interval, Checkpoints: canon.Root(r.Checkpoints), End: r.End(),
	}, nil
}

// Defender returns who answers for the work named by t, and the attempt.
func (l *Lease) defender(t Target) (account string, attempt int) {
	if t.Merge {
		return l.Merges[t.Index].By, l.Merges[t.Index].Attempt
	}
	return l.Units[t.Index].Provider, l.Units[t.Index].Attempt
}

// OpenDispute records that a game about t has begun. The challenger's bond is
// the caller's to lock.
type OpenDispute struct {
	ID         uint64
	Target     Target
	Attempt    int
	Challenger string
}

func (e OpenDispute) apply(l *Lease, _ int64) ([]Effect, error) {
	if _, err := l.Claim(e.Target); err != nil {
		return nil, err
	}
	defender, attempt := l.defender(e.Target)
	switch {
	case attempt != e.Attempt:
		return nil, fmt.Errorf("attempt %d was given up; attempt %d stands", e.Attempt, attempt)
	case l.contest(e.Target) != nil:
		return nil, fmt.Errorf("this work is disputed already, in dispute %d", l.contest(e.Target).ID)
	case defender == e.Challenger:
		return nil, fmt.Errorf("%s cannot challenge its own work", defender)
	}
	c := Contest{ID: e.ID, Target: e.Target, Attempt: attempt, Defender: defender, Challenger: e.Challenger}
	if e.Target.Merge {
		for _, d := range l.Disputes {
			if d.Target.Merge && d.Defender == defender {
				return nil, fmt.Errorf("dispute %d about another merge by %s must end first", d.ID, defender)
			}
		}
	} else {
		c.Bond = l.Units[e.Target.Index].Bond
	}
	l.Disputes = append(l.Disputes, c)
	return []Effect{{Emit, defender, e.ID, "disputed"}}, nil
}

// CloseDispute tells the outcome of a game. A lease does not end before all of
// its disputes have.
type CloseDispute struct {
	ID    uint64
	Loser dispute.Side
}

func (e CloseDispute) apply(l *Lease, now int64) ([]Effect, error) {
	i := slices.IndexFunc(l.Disputes, func(c Contest) bool { return c.ID == e.ID })
	if i < 0 {
		return nil, fmt.Errorf("the lease has no dispute %d", e.ID)
	}
	c := l.Disputes[i]
	l.Disputes = slices.Delete(l.Disputes, i, i+1)
	var effects []Effect
	if e.Loser == dispute.Defender {
		var err error
		if effects, err = l.convict(c); err != nil {
			return nil, err
		}
	} else {
		effects = l.acquit(c)
	}
	l.watchLead(now)
	return effects, nil
}

// acquit lets work stand, and its bond with it, unless it was voided meanwhile.
func (l *Lease) acquit(c Contest) []Effect {
	switch {
	case c.Target.Merge:
	case c.Void:
		return []Effect{{Release, c.Defender, c.Bond, "cleared"}}
	default:
		l.Units[c.Target.Index].HeldUntil = 0
	}
	return nil
}

// convict voids proven fraud and everything that descends from it, pays the
// honest work that is lost out of the bond, rewards the challenger, and leaves
// the rest to the insurance fund.
func (l *Lease) convict(c Contest) ([]Effect, error) {
	var lost []Share
	var effects []Effect
	if !c.Void {
		var err error
		if lost, effects, err = l.void(c); err != nil {
			return nil, err
		}
	}
	l.bar(c.Defender)
	if c.Target.Merge {
		c.Bond = l.dismiss(c.Defender)
	}
	shares, err := l.divide(c, lost)
	if err != nil {
		return nil, err
	}
	effects = append(l.slash(c.Defender, c.Bond, shares), effects...)
	return append(effects, Effect{Emit, c.Defender, c.ID, "convicted"}), nil
}

// divide splits a slashed bond: first those whose honest work is lost, then the
// challenger, then the insurance fund.
func (l *Lease) divide(c Contest, lost []Share) ([]Share, error) {
	left := c.Bond
	var out []Share
	for _, s := range lost {
		s.Amount = min(s.Amount, left)
		left -= s.Amount
		out = addShare(out, s)
	}
	reward, err := scale(c.Bond, l.Params.RewardBps, bps)
	if err != nil {
		return nil, err
	}
	reward = min(reward, left)
	out = addShare(out, Share{c.Challenger, reward})
	return addShare(out, Share{Insurance, left - reward}), nil
}

// void undoes the disputed work and its descendants, and returns what honest
// people lose by it and the bonds that become free.
func (l *Lease) void(c Contest) (lost []Share, effects []Effect, err error) {
	w := l.Order.Problem.Shards
	round := c.Target.Index
	if !c.Target.Merge {
		round = c.Target.Index / w
		if lost, err = l.losses(lost, c.Target.Index, c.Defender); err != nil {
			return nil, nil, err
		}
		l.Units[c.Target.Index].reopen()
	}
	// The cheater's other unfinished units of the round go to others; finished
	// ones were audited and stay open to challenge.
	for i := round * w; i < len(l.Units); i++ {
		u := &l.Units[i]
		later := i >= (round+1)*w
		if u.Status == Open || !later && (u.Provider != c.Defender || u.Status != Assigned) {
			continue
		}
		if later {
			if lost, err = l.losses(lost, i, c.Defender); err != nil {
				return nil, nil, err
			}
		}
		if !l.ghost(Target{Index: i}) {
			effects = append(effects, Effect{Release, u.Provider, u.Bond, "voided"})
		}
		effects = append(effects, Effect{Emit, u.Provider, uint64(i), "voided"})
		u.reopen()
	}
	for r := round; r < l.Round; r++ {
		l.ghost(Target{Merge: true, Index: r})
		l.Merges[r] = Merge{Attempt: l.Merges[r].Attempt + 1}
	}
	if l.Round > round {
		l.Round, l.DueSince = round, 0
	}
	if l.Phase == Closing {
		l.Phase, l.WindowEnd = Active, 0
		if l.Reason != "" {
			l.Phase = Stopping
		}
	}
	return lost, effects, nil
}

// losses adds what a unit's provider, auditors and keepers would have earned;
// the convicted earns nothing.
func (l *Lease) losses(lost []Share, i int, convicted string) ([]Share, error) {
	earned, err := l.earnings(i)
	for _, s := range earned {
		if s.Account != convicted {
			lost = addShare(lost, s)
		}
	}
	return lost, err
}

// ghost lets an open dispute about t live on after the work itself is gone; the
// bond stays with the dispute. It reports whether there was one.
func (l *Lease) ghost(t Target) bool {
	c := l.contest(t)
	if c == nil {
		return false
	}
	c.Void = true
	return true
}
