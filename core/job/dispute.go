package job

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/money"
)

// disputesAbout returns the open disputes about an attempt of the work named by t, unless
// it is void. Truths and verdicts of several attempts stand beside one another.
func (l *Lease) disputesAbout(t Target, attempt int) (out []*Dispute) {
	for i := range l.Disputes {
		if d := &l.Disputes[i]; d.Target == t && d.Attempt == attempt && !d.Void {
			out = append(out, d)
		}
	}
	return out
}

// held reports whether a dispute keeps a unit from going on.
func (l *Lease) held(unit int) bool {
	return slices.ContainsFunc(l.disputesAbout(UnitTarget(unit), l.Units[unit].Attempt), func(c *Dispute) bool { return c.Holds })
}

// ChallengeBond returns what a challenger of a segment of the work named by t locks,
// in utally: at least twice the pay of replaying that segment, or the merge, at the
// dearest rates of the lease. Half of it goes to who defends true work, so a false
// challenge pays for what it makes an honest side do, however many there are.
func (l *Lease) ChallengeBond(t Target, segment int) (uint64, error) {
	p := &l.Order.Problem
	flops, bytes := p.MergeFLOPs, p.MergeBytes
	if t.kind != AboutMerge {
		if t.kind == AboutTruth || t.kind == AboutResult {
			segment = t.segment
		}
		if segment < 0 || segment >= p.Segments() {
			return 0, fmt.Errorf("the %v has no segment %d, only %d of them", t, segment, p.Segments())
		}
		_, steps := p.Segment(segment)
		flops, bytes = p.StepFLOPs*uint64(steps), p.StepBytes*uint64(steps)
	}
	var dearest Rates
	for i := range l.Providers {
		dearest = dearest.Dearest(l.Providers[i].Rates)
	}
	replay, err := dearest.Pay(flops, bytes)
	if err != nil {
		return 0, err
	}
	replay, err = money.Times(replay, 2)
	return max(l.Params.ChallengeBond, replay), err
}

// OpenDispute records that a game about t has begun. The challenger's bond is
// the caller's to lock.
type OpenDispute struct {
	ID         uint64
	Target     Target
	Attempt    int
	Segment    int // that the game begins with
	Challenger string
}

func (e OpenDispute) apply(l *Lease, now int64) ([]Effect, error) {
	s, err := l.Subject(e.Target, e.Attempt)
	if err != nil {
		return nil, err
	}
	c := Dispute{ID: e.ID, Target: e.Target, Attempt: e.Attempt, Segment: e.Segment, Defender: s.Defender, Challenger: e.Challenger, At: now}
	switch n := s.Claim.Segments(); {
	case e.Segment < 0 || e.Segment >= n:
		return nil, fmt.Errorf("the %v has no segment %d, only %d of them", e.Target, e.Segment, n)
	case e.Target.kind == AboutVerdict && !slices.Contains(s.Audited, e.Segment):
		return nil, fmt.Errorf("%s audited segments %v, not segment %d", s.Defender, s.Audited, e.Segment)
	case e.Target.kind == AboutVerdict && l.final(e.Target.index, e.Attempt, now):
		return nil, fmt.Errorf("verdicts about unit %d could be disputed until protocol time %d ms", e.Target.index, l.Units[e.Target.index].WindowEnd)
	case e.Target.kind == AboutUnit && l.Units[e.Target.index].Status == Received:
		return nil, fmt.Errorf("unit %d is disputed once a quorum of custodians has attested to it", e.Target.index)
	case s.Defender == e.Challenger:
		return nil, fmt.Errorf("%s cannot challenge its own work", s.Defender)
	case l.Phase == Closing && now >= l.Windows.End:
		return nil, fmt.Errorf("the lease's window closed at protocol time %d ms: it waits only for the disputes that are open", l.Windows.End)
	case len(l.Disputes) >= maxDisputes-reservedDisputes && l.pledge(&c) == "", len(l.Disputes) >= maxDisputes:
		return nil, fmt.Errorf("%d disputes about the lease are open, as many as there may be: try again when one has ended; the lease's window lasts until then", len(l.Disputes))
	}
	for _, c := range l.disputesAbout(e.Target, e.Attempt) {
		if c.Challenger == e.Challenger {
			return nil, fmt.Errorf("this work is disputed by %s already, in dispute %d", e.Challenger, c.ID)
		}
	}
	c.Holds = e.Target.kind == AboutUnit && (!l.due(&l.Units[e.Target.index], now) || l.Units[e.Target.index].windowRuns(&l.Order.Conditions, now))
	c.Pledge = l.pledge(&c)
	l.Disputes = append(l.Disputes, c)
	return []Effect{{Emit, s.Defender, e.ID, "disputed"}}, nil
}

// due reports whether nothing but disputes keeps a unit from being accepted or
// given up at now. Who challenges it then is heard, but holds nothing up any more:
// so all challengers together delay a unit by no longer than one game.
func (l *Lease) due(u *Unit, now int64) bool {
	switch late := now > u.Due; {
	case u.Status == Received, u.Status == Counted && l.Forces() && !u.Plain:
		return late
	case u.Status == Counted:
		return now >= u.waitsUntil(&l.Order.Conditions) && now >= u.HeldUntil && (late || u.audited())
	}
	return true
}

// MissAnswer tells that the defender of a dispute has not answered in time, or
// has answered again. Meanwhile it gets no new work.
type MissAnswer struct {
	ID     uint64
	Missed bool
}

func (e MissAnswer) apply(l *Lease, now int64) ([]Effect, error) {
	i, err := l.dispute(e.ID)
	if err != nil {
		return nil, err
	}
	c := &l.Disputes[i]
	c.Missed = e.Missed
	l.watchLead(now)
	if !e.Missed {
		return nil, nil
	}
	return []Effect{{Emit, c.Defender, e.ID, "answer missed"}}, nil
}

// Substitute puts another in the place of a challenger that fell silent; the
// reward will be its own.
type Substitute struct {
	ID uint64
	By string
}

func (e Substitute) apply(l *Lease, _ int64) ([]Effect, error) {
	i, err := l.dispute(e.ID)
	if err != nil {
		return nil, err
	}
	if l.Disputes[i].Defender == e.By {
		return nil, fmt.Errorf("%s cannot challenge its own work", e.By)
	}
	l.Disputes[i].Challenger = e.By
	return nil, nil
}

func (l *Lease) dispute(id uint64) (int, error) {
	i := slices.IndexFunc(l.Disputes, func(c Dispute) bool { return c.ID == id })
	if i < 0 {
		return i, fmt.Errorf("the lease has no dispute %d", id)
	}
	return i, nil
}

// Suspended reports whether a provider has missed an answer about a unit.
func (l *Lease) Suspended(provider string) bool {
	return slices.ContainsFunc(l.Disputes, func(c Dispute) bool { return c.Missed && c.Defender == provider })
}

// CloseDispute tells the outcome of a game. A lease does not end before all of
// its disputes have. A conviction ends all other disputes about the same claim:
// they are gone from the lease, and nobody has lost them.
type CloseDispute struct {
	ID    uint64
	Loser dispute.Side
}

func (e CloseDispute) apply(l *Lease, now int64) ([]Effect, error) {
	i, err := l.dispute(e.ID)
	if err != nil {
		return nil, err
	}
	c := l.Disputes[i]
	if len(l.Disputes) >= maxDisputes-reservedDisputes && l.Phase == Closing { // who was kept out has its time
		l.Windows.End = max(l.Windows.End, now+l.Order.Conditions.Window)
	}
	l.Disputes = slices.Delete(l.Disputes, i, i+1)
	var effects []Effect
	switch {
	case l.moot(&c):
		effects = []Effect{{Emit, c.Defender, c.ID, "moot"}}
	case e.Loser == dispute.Defender:
		if effects, err = l.convict(c, now); err != nil {
			return nil, err
		}
	default:
		if effects = l.acquit(c); c.Target.kind == AboutResult { // who differs has time for another
			l.Units[c.Target.index].Due = max(l.Units[c.Target.index].Due, now+l.Order.Conditions.UnitTimeout)
		}
		if e.Loser == dispute.Challenger {
			more, err := l.redeem(c)
			if err != nil {
				return nil, err
			}
			effects = append(effects, more...)
		}
	}
	l.dropMoot()
	l.watchLead(now)
	return effects, nil
}

// Moot reports whether a dispute of the lease is about what is gone: nothing is
// left to be judged, so nobody loses it.
func (l *Lease) Moot(id uint64) bool {
	i, err := l.dispute(id)
	return err == nil && l.moot(&l.Disputes[i])
}

func (l *Lease) moot(c *Dispute) bool {
	switch t := c.Target; t.kind {
	case AboutUnit: // the bond of one that is void stays with its disputes
		u := &l.Units[t.index]
		return !c.Void && (u.Receipt == nil || u.Attempt != c.Attempt)
	case AboutMerge: // of one that is void, its lead's bond
		return c.Void && l.gone(c.Defender) || !c.Void && l.Merges[t.index].Attempt != c.Attempt
	case AboutResult:
		_, err := l.replicaSubject(t, c.Attempt)
		return err != nil
	case AboutVerdict:
		a, _, err := l.Verdict(t.index, c.Attempt, t.account)
		return err != nil || !a.Bonded
	case AboutTruth:
		return l.Shown(t.index, c.Attempt) == nil
	}
	return true
}

// dropMoot ends disputes about void merges of a lead that has lost its bond. All
// others that an event makes moot it ends itself.
func (l *Lease) dropMoot() {
	l.Disputes = slices.DeleteFunc(l.Disputes, func(c Dispute) bool {
		return c.Target.kind == AboutMerge && c.Void && l.gone(c.Defender)
	})
}

// acquit lets work stand, and its bond with it. The bond of work that was voided
// meanwhile is free once nobody disputes it any more.
func (l *Lease) acquit(c Dispute) []Effect {
	switch {
	case c.Target.kind == AboutVerdict:
		return l.clear(c.Target, c.Attempt)
	case c.Target.kind != AboutUnit:
	case c.Void:
		for i := range l.Disputes {
			if d := &l.Disputes[i]; d.sameClaim(c) {
				d.Bond += c.Bond
				return nil
			}
		}
		return l.Reserve.release(c.Defender, ForWork, c.Bond)
	case len(l.disputesAbout(c.Target, c.Attempt)) == 0 && !l.Units[c.Target.index].owed(c.Pledge):
		l.Units[c.Target.index].HeldUntil = 0
	}
	return nil
}

// sameClaim reports whether two disputes are about the same attempt of the same
// work.
func (c *Dispute) sameClaim(d Dispute) bool { return c.Target == d.Target && c.Attempt == d.Attempt }

// convict voids proven fraud and everything that descends from it. Out of the bond it pays the
// honest work that is lost and rewards the challenger. The rest is left to the insurance fund.
func (l *Lease) convict(c Dispute, now int64) ([]Effect, error) {
	var lost []Share
	var effects []Effect
	for i := range l.Disputes {
		if d := &l.Disputes[i]; d.sameClaim(c) {
			c.Bond += d.Bond
		}
	}
	l.Disputes = slices.DeleteFunc(l.Disputes, func(d Dispute) bool { return d.sameClaim(c) })
	reason, bond := ForWork, c.Bond
	switch c.Target.kind {
	case AboutTruth:
		return l.expose(c)
	case AboutVerdict:
		return l.refute(c, now)
	case AboutResult:
		return l.convictReplica(c, now)
	case AboutUnit:
		if !c.Void && len(l.Units[c.Target.index].Replicas) > 0 {
			return l.succeed(c, now)
		}
	case AboutMerge:
		reason, bond = ForLead, l.Reserve.Held(c.Defender, ForLead)
	}
	var err error
	if !c.Void {
		if i := c.Target.index; reason == ForWork {
			if bond, err = l.unitBond(i, &l.Units[i]); err != nil {
				return nil, err
			}
		}
		if lost, effects, err = l.void(c); err != nil {
			return nil, err
		}
	}
	l.bar(c.Defender)
	if reason == ForLead {
		l.dismiss(c.Defender)
	} else {
		effects = append(effects, Effect{Kind: Discredit, Account: c.Defender})
	}
	shares, err := l.divide(bond, c.Challenger, lost)
	if err != nil {
		return nil, err
	}
	effects = append(l.slash(c.Defender, reason, bond, shares), effects...)
	return append(effects, Effect{Kind: Jail, Account: c.Defender}, Effect{Emit, c.Defender, c.ID, "convicted"}), nil
}

// divide splits a slashed bond: first those whose honest work is lost, then who
// showed the fraud, then the insurance fund. It counts rewards of accounts that are no
// parties. Beyond what can be recorded, these go to the fund; to get there takes one conviction each.
func (l *Lease) divide(bond uint64, challenger string, lost []Share) ([]Share, error) {
	left := bond
	var out []Share
	for _, s := range lost {
		s.Amount = min(s.Amount, left)
		left -= s.Amount
		out = addShare(out, s)
	}
	reward, err := money.Scale(bond, l.Params.RewardBps, bps)
	if err != nil {
		return nil, err
	}
	reward = min(reward, left)
	const parties = 2*MaxParties + 3 // with consumer, first lead and fund
	switch {
	case find(l.Providers, challenger) != nil || find(l.Auditors, challenger) != nil:
	case l.Ledger.Strangers >= maxRecords-parties:
		reward = 0
	default:
		l.Ledger.Strangers++
	}
	out = addShare(out, Share{challenger, reward})
	return addShare(out, Share{Insurance, left - reward}), nil
}

// void undoes the disputed work and its descendants, and returns what honest
// people lose by it and the bonds that become free.
func (l *Lease) void(c Dispute) (lost []Share, effects []Effect, err error) {
	w := l.Order.Problem.Shards
	round := l.roundOf(c.Target)
	if i := c.Target.index; c.Target.kind == AboutUnit {
		if lost, err = l.losses(lost, i, true, c.Defender); err != nil {
			return nil, nil, err
		}
		effects = l.retire(i, c.Segment)
		l.reopen(i)
	}
	// The cheater's other unfinished units of the round go to others; finished
	// ones were audited and stay open to challenge.
	for i := round * w; i < len(l.Units); i++ {
		u := &l.Units[i]
		later := i >= (round+1)*w
		if later {
			u.Withheld = nil
		}
		if u.Status == Open || !later && (u.Provider != c.Defender || u.Status != Assigned) {
			continue
		}
		if later {
			if lost, err = l.losses(lost, i, false, c.Defender); err != nil {
				return nil, nil, err
			}
			effects = append(effects, l.retire(i, -1)...)
		}
		bond, err := l.unitBond(i, u)
		if err != nil {
			return nil, nil, err
		}
		effects = append(effects, l.free(i, bond)...)
		effects = append(effects, l.freeReplicas(i)...)
		effects = append(effects, Effect{Emit, u.Provider, uint64(i), "voided"})
		l.reopen(i)
	}
	for r := round; r < l.Round; r++ {
		l.ghost(MergeTarget(r), 0)
		l.Merges[r] = Merge{Attempt: l.Merges[r].Attempt + 1}
	}
	if l.Round > round {
		l.Round, l.DueSince = round, 0
		if l.Windows.Final >= round {
			l.Windows.Final, l.Windows.Next = round, 0
		}
		l.Recount()
		l.look()
	}
	if l.Phase == Closing {
		l.Phase, l.Windows.End = Active, 0
		if l.Reason != "" {
			l.Phase = Stopping
		}
	}
	return lost, gather(effects), nil
}

// losses adds what a unit's provider, auditors and custodians would have earned;
// the convicted earns nothing.
func (l *Lease) losses(lost []Share, i int, refuted bool, convicted string) ([]Share, error) {
	earned, err := l.earnings(i, refuted)
	for _, s := range earned {
		if s.Account != convicted {
			lost = addShare(lost, s)
		}
	}
	return lost, err
}

// ghost lets open disputes about t live on after the work itself is gone; what is
// reserved behind it stays with the first of them. It reports whether there was one.
func (l *Lease) ghost(t Target, bond uint64) bool {
	open := l.disputesAbout(t, l.Attempt(t))
	for i, c := range open {
		c.Void = true
		if i == 0 {
			c.Bond = bond
		}
	}
	return len(open) > 0
}
