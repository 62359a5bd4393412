package job

import (
	"math"
	"slices"

	"github.com/tally-network/tally/core/canon"
)

// Tick lets protocol time pass: deadlines fall due, windows close, and at the end
// the lease is settled. Auditors and custodians, and what these are asked for, are drawn
// from the seed, a value of the beacon.
type Tick struct {
	Seed    canon.Hash
	Units   []int                                  // whose time has come, of a lease that is known in parts
	Affords func(account string, bond uint64) bool // whether it can put up so many utally; asked of few
}

func (e Tick) apply(l *Lease, now int64) ([]Effect, error) {
	settles := l.settles(now)
	effects := l.tickSweep(now)
	more, err := l.tickQuestions(e.Seed, now)
	if err != nil {
		return nil, err
	}
	effects = append(effects, more...)
	attended, err := l.tickAttended(&e, now)
	if err != nil {
		return nil, err
	}
	effects = append(effects, attended...)
	files, err := l.tickFiles(&e, now)
	if err != nil {
		return nil, err
	}
	effects = append(effects, files...)
	for _, i := range l.knownOfRound() {
		more, err := l.tickUnit(i, now)
		if err != nil {
			return nil, err
		}
		effects = append(effects, more...)
	}
	l.Windows.pass(l, now)
	l.watchLead(now)
	abandoned := l.DueSince != 0 && now >= l.abandonedAt()
	if l.Phase == Active && abandoned {
		l.stop(now, abandonment(l))
	}
	if why := l.stuck(); l.Phase == Active && why != "" {
		l.stop(now, why)
	}
	if at := l.deadline(); l.Phase == Active && now >= at {
		l.stop(now, "the order's deadline is over")
	}
	if l.Phase == Stopping && !l.underWay() && (abandoned || !l.AwaitsMerge()) {
		l.close(now)
	}
	if settles {
		more, err := l.settle()
		return append(effects, more...), err
	}
	return effects, nil
}

// abandonment says why nobody works on the lease, as far as the chain sees it.
func abandonment(l *Lease) string {
	if len(l.Queue) == 0 && !l.AwaitsMerge() {
		return "its providers took no unit in time, and none of them said that it was ready"
	}
	return "no validator led the work on in time"
}

// settles reports whether a lease that a tick before this has closed is over.
func (l *Lease) settles(now int64) bool {
	return l.Phase == Closing && now >= l.Windows.End && len(l.Disputes) == 0 && len(l.Asked) == 0
}

// tickUnit lets time pass for one unit of the round.
func (l *Lease) tickUnit(i int, now int64) ([]Effect, error) {
	u := &l.Units[i]
	if l.held(i) {
		return nil, nil // the game decides
	}
	late := now > u.Due
	switch {
	case u.Status == Assigned && late && l.startDisputed(i): // perhaps nobody has what it starts from
		u.Due = now + l.Order.Conditions.UnitTimeout
	case u.Status == Assigned && l.replicated():
		return l.tickReplicas(i, now)
	case u.Status == Assigned && late:
		return l.giveUp(i, "late")
	case u.Status == Received && late && (l.standing(u) < l.Order.Conditions.Quorum() || u.WindowEnd != 0):
		return l.undrawn(i)
	case u.Status == Received && late:
		// Its data cannot be had. Withholding must cost what being late does: else units
		// and escrow could be held for nothing.
		effects := l.retire(i, -1)
		if !slices.Contains(u.Withheld, u.Provider) {
			u.Withheld = append(u.Withheld, u.Provider)
		}
		if len(u.Replicas) > 0 {
			more, err := l.passOn(i, now)
			return append(effects, more...), err
		}
		more, err := l.giveUp(i, "unattested")
		return append(effects, more...), err
	case u.Status == Counted && l.awaitsForcedDraw(u) && late:
		effects := l.retire(i, -1)
		more, err := l.giveUp(i, "late")
		return append(effects, more...), err
	case u.Status == Counted:
		return l.tickCounted(i, late, now)
	}
	return nil, nil
}

// startDisputed reports whether the merge that a unit starts from is in dispute.
func (l *Lease) startDisputed(i int) bool {
	start := MergeTarget(i/l.Order.Problem.Shards - 1)
	return slices.ContainsFunc(l.Disputes, func(d Dispute) bool { return d.Target == start && !d.Void })
}

// undrawn reopens a unit for which nobody could be drawn who could put up the bond, or
// which had a quorum until custodians were convicted. That is no fault of its provider.
func (l *Lease) undrawn(i int) ([]Effect, error) {
	u := &l.Units[i]
	effects := l.retire(i, -1)
	freed, err := l.free(i)
	effects = append(effects, freed...)
	effects = append(effects, Effect{Emit, u.Provider, uint64(i), "undrawn"})
	l.reopen(i)
	return effects, err
}

func (l *Lease) tickCounted(i int, late bool, now int64) (effects []Effect, err error) {
	u := &l.Units[i]
	for j := range u.Audits {
		if a := &u.Audits[j]; late && !a.Done && !a.Forfeit {
			a.Forfeit = true
			effects = append(append(effects, l.unbind(a)...), Effect{Emit, a.Auditor, uint64(i), "audit forfeited"})
			l.askForcedDraw(u, now)
		}
	}
	if now >= max(u.waitsUntil(&l.Order.Conditions), u.HeldUntil) && u.audited() && !l.awaitsForcedDraw(u) {
		if l.custodians(u) < l.Order.Conditions.Quorum() {
			return append(effects, l.redraw(i, now)...), nil // one was convicted a moment ago
		}
		window := max(u.WindowEnd, now)
		u.Status, u.HeldUntil, u.WindowEnd = Accepted, 0, window+l.Order.Conditions.UnitWindow
		l.await(i, u.WindowEnd)
		if window > now { // custodians may still attest
			l.await(i, window)
		}
		effects = append(effects, l.dropCustodians(i, true, now)...)
		effects = append(effects, Effect{Emit, u.Provider, uint64(i), "accepted"})
		alarms, err := l.falseAlarms(i)
		return append(effects, alarms...), err
	}
	return effects, nil
}

// audited reports whether no audit is outstanding.
func (u *Unit) audited() bool {
	for _, a := range u.Audits {
		if !a.Done && !a.Forfeit {
			return false
		}
	}
	return true
}

// stuck says why a unit that is open can never be accepted, "" if it can.
func (l *Lease) stuck() string {
	able := slices.DeleteFunc(slices.Clone(l.Providers), func(p Party) bool { return slices.Contains(l.Barred, p.Account) })
	switch {
	case l.Round == len(l.Merges) || l.Count.Status[Open] == 0:
		return ""
	case len(able) == 0:
		return "every provider of the lease is barred from it"
	case Owners(able) < l.Order.Conditions.Replicas:
		return "too few providers are left that could compute a unit beside one another"
	case Owners(l.referees()) < l.Order.Conditions.Quorum():
		return "too few validators are left that could keep a unit"
	}
	return ""
}

// Never is a time that does not come.
const Never = math.MaxInt64

// deadline returns the protocol time from which on no unit is given out, Never if the order sets none.
func (l *Lease) deadline() int64 {
	if d := l.Order.Conditions.Needs.Deadline; d > 0 {
		return l.MatchedAt + d
	}
	return Never
}

// Wake returns the protocol time from which Tick has something to do, Never if
// other events must come first. A chain need not tick a lease before it.
func (l *Lease) Wake() int64 {
	wake := l.WakeSelf()
	for i := range l.Units {
		wake = min(wake, l.WakeUnit(i))
	}
	return wake
}

// WakeSelf is Wake of a lease but for its units.
func (l *Lease) WakeSelf() int64 {
	wake := wakeOf(l.Files.Questions)
	at := func(t int64) { wake = min(wake, t) }
	if l.Sweep > 0 && l.Phase != Settled {
		return 0
	}
	if l.Windows.waits(l) {
		at(l.Windows.Next)
	}
	switch l.Phase {
	case Active:
		if l.stuck() != "" {
			return 0
		}
		if l.Files.Due != 0 {
			at(l.Files.Due + 1)
		}
		if at(l.deadline()); l.DueSince != 0 {
			at(l.abandonedAt())
		}
	case Stopping:
		if l.DueSince != 0 {
			at(l.abandonedAt())
		} else if !l.underWay() {
			return 0
		}
	case Closing:
		if len(l.Disputes) == 0 && len(l.Asked) == 0 {
			at(l.Windows.End)
		}
		return wake
	default:
		return Never
	}
	return wake
}

// WakeUnit returns the protocol time from which Tick has something to do with a unit,
// Never if other events must come first.
func (l *Lease) WakeUnit(i int) int64 {
	u := &l.Units[i]
	wake := wakeOf(u.Questions)
	if u.Attend != 0 {
		wake = min(wake, u.Attend)
	}
	switch {
	case u.Status != Assigned && u.Status != Received && u.Status != Counted || l.held(i) || l.resultDisputed(i):
		return wake
	case u.Status == Counted && u.audited() && !l.awaitsForcedDraw(u):
		return min(wake, max(u.waitsUntil(&l.Order.Conditions), u.HeldUntil))
	}
	return min(wake, u.Due+1)
}
