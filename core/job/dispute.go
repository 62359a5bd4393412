package job

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/money"
)

// DisputesAbout returns the open disputes about an attempt of the work named by t, unless
// it is void. Truths and verdicts of several attempts stand beside one another.
func (l *Lease) DisputesAbout(t Target, attempt int) (out []*Dispute) {
	for i := range l.Disputes {
		if d := &l.Disputes[i]; d.Target == t && d.Attempt == attempt && !d.Void {
			out = append(out, d)
		}
	}
	return out
}

// held reports whether a dispute keeps a unit from going on.
func (l *Lease) held(unit int) bool {
	return slices.ContainsFunc(l.DisputesAbout(UnitTarget(unit), l.Units[unit].Attempt), func(c *Dispute) bool { return c.Holds })
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
	for _, c := range l.DisputesAbout(e.Target, e.Attempt) {
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
	ID     uint64
	Loser  dispute.Side
	Silent bool // it lost since it did not answer, or by what somebody else played in its place
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
		if effects, err = l.convict(c, e.offence(), now); err != nil {
			return nil, err
		}
	default:
		if effects, err = l.acquit(c, now); err != nil {
			return nil, err
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
	if l.broke(c) {
		return true
	}
	switch t := c.Target; t.kind {
	case AboutUnit:
		u := &l.Units[t.index]
		return !c.Void && (u.Receipt == nil || u.Attempt != c.Attempt)
	case AboutMerge:
		return !c.Void && l.Merges[t.index].Attempt != c.Attempt
	case AboutResult:
		_, err := l.replicaSubject(t, c.Attempt)
		return !c.Void && err != nil
	case AboutVerdict:
		a, _, err := l.Verdict(t.index, c.Attempt, t.account)
		return err != nil || !a.Bonded
	case AboutTruth:
		return l.Shown(t.index, c.Attempt) == nil
	}
	return true
}

// broke reports whether a dispute is about what is void, or about a truth, of somebody who has
// lost all that it answered with.
func (l *Lease) broke(c *Dispute) bool {
	e := l.Reserve.of(c.Defender, c.reason())
	return e != nil && e.spent() && (c.Void || c.Target.kind == AboutTruth)
}

// dropMoot ends disputes with those who have nothing left to lose. All others that an event makes
// moot it ends itself.
func (l *Lease) dropMoot() {
	l.Disputes = slices.DeleteFunc(l.Disputes, func(c Dispute) bool { return l.broke(&c) })
}

// acquit lets work stand. What stands behind work that was voided meanwhile is free once nobody
// disputes it any more.
func (l *Lease) acquit(c Dispute, now int64) ([]Effect, error) {
	switch kind := c.Target.kind; {
	case kind == AboutVerdict:
		return l.clear(c.Target, c.Attempt), nil
	case kind == AboutMerge || kind == AboutTruth:
	case c.Void && l.firstOf(&c) < 0:
		return l.drop(c.Defender, ForWork, c.Gain)
	case c.Void:
	case kind == AboutResult: // who differs has time for another
		u := &l.Units[c.Target.index]
		u.Due = max(u.Due, now+l.Order.Conditions.UnitTimeout)
	case len(l.DisputesAbout(c.Target, c.Attempt)) == 0 && !l.Units[c.Target.index].owed(c.Pledge):
		l.Units[c.Target.index].HeldUntil = 0
	}
	return nil, nil
}

// firstOf returns the place of the first open dispute about the claim that c is about, −1 if there
// is none.
func (l *Lease) firstOf(c *Dispute) int {
	return slices.IndexFunc(l.Disputes, func(d Dispute) bool { return d.sameClaim(*c) })
}

// sameClaim reports whether two disputes are about the same attempt of the same work. A result is
// one claim, whatever segment of it is disputed.
func (c *Dispute) sameClaim(d Dispute) bool {
	t, o := c.Target, d.Target
	if t.kind == AboutResult {
		t.segment, o.segment = 0, 0
	}
	return t == o && c.Attempt == d.Attempt
}

// ruling is what a conviction comes to.
type ruling struct {
	reason Reason
	from   int    // the round from which work is void
	all    bool   // with all that the convict answers for, not only what was refuted
	kept   uint64 // what of the reserve stays behind the rest
}

// judge returns what a conviction comes to. It needs only a skeleton of the lease. What descends
// from the refuted work alone is void if the reserve pays that, and enough is left for the convict's
// other claims. Else none of these may stand: nothing would pay what they void later. Nor do they
// where other replicas answer for the same: see expel.
func (l *Lease) judge(c *Dispute) (s ruling, err error) {
	s = ruling{reason: c.reason(), from: l.roundOf(c.Target)}
	e := l.Reserve.of(c.Defender, s.reason)
	if e != nil && l.replicated() && s.reason == ForWork {
		s.all, s.from = true, min(s.from, e.First)
		return s, nil
	}
	own := 1
	if c.Void && s.reason == ForLead { // it was counted until it was void
		own = 0
	}
	if e == nil || e.Claims <= own {
		return s, nil
	}
	if s.kept, err = l.kept(e); err != nil {
		return s, err
	}
	units := uint64(1)
	if r := min(l.Round, l.Order.Problem.Rounds-1); !c.Void && c.Target.kind != AboutTruth && r > s.from {
		units += uint64((r - s.from) * l.Order.Problem.Shards)
	}
	lost, err := money.Scale(l.Quote.Honest, units, uint64(l.Order.Problem.Units()))
	if err != nil {
		return s, err
	}
	rest := e.Amount - min(s.kept, e.Amount)
	reward, err := money.Scale(rest, l.Params.RewardBps, bps)
	if s.all = rest-min(reward, rest) < lost; s.all {
		s.from, s.kept = e.First, 0
	}
	return s, err
}

// voids reports whether a conviction makes work void.
func (s *ruling) voids(c *Dispute) bool { return s.all || !c.Void && c.Target.kind != AboutTruth }

// convict voids proven fraud and everything that descends from it. Out of the convict's reserve it
// pays the honest work that is lost, and rewards the challenger. The insurance fund has the rest,
// at once or, of what stays behind the convict's other claims, when the lease ends.
func (l *Lease) convict(c Dispute, offence Offence, now int64) (effects []Effect, err error) {
	l.Disputes = slices.DeleteFunc(l.Disputes, func(d Dispute) bool { return d.sameClaim(c) })
	if c.Target.kind == AboutVerdict {
		return l.refute(c, offence, now)
	}
	s, err := l.judge(&c)
	if err != nil {
		return nil, err
	}
	e := l.Reserve.open(c.Defender, s.reason)
	e.Guilty = true
	held := e.Amount
	var lost []Share
	switch {
	case c.Target.kind == AboutTruth:
		lost, effects, err = l.disprove(c)
	case c.Void && s.reason == ForWork:
		_, err = l.drop(c.Defender, ForWork, c.Gain)
	}
	if err == nil && l.replicated() && s.reason == ForWork {
		lost, effects, err = l.expel(&c, &s, now)
	}
	if err != nil {
		return nil, err
	}
	if s.voids(&c) && s.from < l.Order.Problem.Rounds {
		more, freed, err := l.void(c, s)
		if err != nil {
			return nil, err
		}
		effects = append(effects, freed...)
		for _, share := range more {
			lost = addShare(lost, share)
		}
	}
	l.bar(c.Defender)
	if s.reason == ForLead {
		l.dismiss(c.Defender)
	}
	effects = append(effects, Effect{Kind: Discredit, Account: c.Defender})
	if l.Reserve.of(c.Defender, s.reason).Claims > 0 {
		held -= s.kept
	}
	shares, err := l.divide(held, c.Challenger, lost)
	if err != nil {
		return nil, err
	}
	effects = append(l.slash(c.Defender, s.reason, held, shares), effects...)
	return append(effects, jail(l, c.Defender, offence), Effect{Emit, c.Defender, c.ID, "convicted"}), nil
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

// void undoes refuted work and its descendants, or all of the convict's, and returns what honest
// people lose by it and the bonds that become free.
func (l *Lease) void(c Dispute, s ruling) (lost []Share, effects []Effect, err error) {
	w, round := l.Order.Problem.Shards, s.from
	for i := round * w; i < len(l.Units); i++ {
		u := &l.Units[i]
		later := i >= (round+1)*w
		if later {
			u.Withheld = nil
		}
		refuted := c.Target == UnitTarget(i) && !c.Void
		// Of this round the convict's unfinished units go to others; finished ones were audited,
		// and stay open to challenge, unless nothing would pay what they void.
		convicts := s.reason == ForWork && u.Provider == c.Defender && (refuted || s.all || u.Status == Assigned)
		if u.Status == Open || !later && !convicts {
			continue
		}
		if lost, err = l.losses(lost, i, refuted, c.Defender); err != nil {
			return nil, nil, err
		}
		segment := -1
		if refuted {
			segment = c.Segment
		}
		effects = append(effects, l.retire(i, segment)...)
		freed, err := l.free(i)
		if err != nil {
			return nil, nil, err
		}
		effects = append(append(effects, freed...), Effect{Emit, u.Provider, uint64(i), "voided"})
		l.reopen(i)
	}
	for r := round; r < l.Round; r++ {
		l.ghost(MergeTarget(r), 0)
		if _, err := l.drop(l.Merges[r].By, ForLead, 0); err != nil {
			return nil, nil, err
		}
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

// ghost lets open disputes about t live on after the work itself is gone, and with them what
// stands behind it. It reports whether there was one.
func (l *Lease) ghost(t Target, gain uint64) (open bool) {
	claim := Dispute{Target: t, Attempt: l.Attempt(t)}
	for i := range l.Disputes {
		if c := &l.Disputes[i]; !c.Void && claim.sameClaim(*c) {
			c.Void, c.Gain, open = true, gain, true
		}
	}
	return open
}
