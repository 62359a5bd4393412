package job

import (
	"fmt"
	"slices"
)

// Line is who leads a lease, and who may take over.
type Line struct {
	Leads     []Leader // the first lead and, in drawn order, who may take over: none before the first draw
	LeadIndex int      // of who leads
	DueSince  int64    // since when the lead has had something to do; 0 if it has not
	OpenSince int64    // since when the lead of the moment has had a unit to give
	BegunAt   int64    // since when units of the round can be given out; 0 before the first
	StartedAt int64    // since when units of the first round could be given out; 0 before
}

// Leader is a validator that leads, has led or may take over. It has stake reserved from when it begins
// to lead until the lease ends, for its merges stay open to challenge.
type Leader struct {
	Account string
	Gone    bool // convicted of a wrong merge
}

// Lead returns the account that leads the lease now, "" if nobody does.
func (n *Line) Lead() string {
	if lead := n.Leads[n.LeadIndex]; !lead.Gone {
		return lead.Account
	}
	return ""
}

// inLine returns the place of account in the line of leaders, −1 if it has none.
func (n *Line) inLine(account string) int {
	return slices.IndexFunc(n.Leads, func(d Leader) bool { return d.Account == account })
}

// turns returns after how many timeouts the leader at place i of the line may take over.
func (n *Line) turns(i int) int64 {
	k := int64(i - n.LeadIndex)
	if n.Leads[n.LeadIndex].Gone {
		k--
	}
	return k
}

// dismiss takes the lead's office, if account holds it.
func (n *Line) dismiss(account string) {
	for i := range n.Leads {
		if d := &n.Leads[i]; d.Account == account {
			d.Gone = true
		}
	}
	n.DueSince = 0
}

// TakeLead lets a validator of the drawn succession take over from a lead that did not do what was due:
// the k-th in line after k timeouts, the next at once if the lead was dismissed.
//
// The old lead pays for it if it has kept somebody waiting: it owed a merge, or there was
// a provider that waited for a unit. A lead that found nobody who takes a unit has done
// what it could; the chain cannot see offers, but it sees who waits.
type TakeLead struct {
	By      string
	Waiting []Standing // of the providers that wait for a unit and are active
}

func (e TakeLead) apply(l *Lease, now int64) ([]Effect, error) {
	i := l.inLine(e.By)
	if !l.led() || i <= l.LeadIndex {
		return nil, fmt.Errorf("%s is not next in line to lead this lease", e.By)
	}
	if !l.idle(i, now) && !l.waitedFor(e.Waiting, l.turns(i)*l.Params.LeadTimeout, now) {
		return nil, fmt.Errorf("%s may take the lead %d ms after something is due, or after a provider that can take a unit has said that it is ready", e.By, l.turns(i)*l.Params.LeadTimeout)
	}
	bond, err := l.leadBond()
	if err != nil {
		return nil, err
	}
	var effects []Effect
	if !l.Leads[l.LeadIndex].Gone && l.keepsWaiting(e.Waiting, now) {
		if effects, err = l.fineLead(); err != nil {
			return nil, err
		}
	}
	l.LeadIndex = i
	l.DueSince = 0
	l.OpenSince = now // the new lead has its own time
	l.watchLead(now)
	held, err := l.Reserve.hold(e.By, ForLead, bond)
	effects = append(effects, held...)
	return append(effects, Effect{Emit, e.By, uint64(i), "lead taken over"}), err
}

// led reports whether a lead may have something to do.
func (l *Lease) led() bool { return l.Phase == Active || l.AwaitsMerge() }

// keepsWaiting reports whether the lead owes a merge, or could all the while have given a unit to a
// provider that has waited for one for half the lead's time. So nobody has a lead fined by putting
// up stake for the moment in which it is asked.
func (l *Lease) keepsWaiting(waiting []Standing, now int64) bool {
	staked := slices.Clone(waiting)
	for i := range staked {
		staked[i].Free = min(staked[i].Free, staked[i].Staked)
	}
	return l.AwaitsMerge() || l.waitedFor(staked, l.Params.LeadTimeout/2, now)
}

// waitedFor reports whether a provider has waited so many ms for a unit that the lead could give it.
func (l *Lease) waitedFor(waiting []Standing, ms, now int64) bool {
	for _, s := range waiting {
		if !l.hasWaited(s.Provider, ms, now) || now-s.Since < ms {
			continue
		}
		if _, _, err := l.stand(s, nil); err == nil {
			return true
		}
	}
	return false
}

// hasWaited reports whether a provider has waited so many ms for a unit that it may have, as
// far as the lease knows.
func (l *Lease) hasWaited(provider string, ms, now int64) bool {
	at := l.queued(provider)
	return at >= 0 && now-max(l.Queue[at].Since, l.OpenSince) >= ms && l.MayWork(provider) && l.opensFor(provider)
}

// opensFor reports whether a provider may have one of the open units.
func (l *Lease) opensFor(provider string) bool {
	c := &l.Count
	return c.Status[Open] > len(c.Withheld) || slices.ContainsFunc(c.Withheld, func(i int) bool { return !l.Withheld(i, provider) })
}

// fineLead takes the penalty of a lead that does not do what it has taken on.
func (l *Lease) fineLead() ([]Effect, error) {
	lead := l.Leads[l.LeadIndex].Account
	effects, err := l.fine(lead, ForLead)
	return append(effects, Effect{Kind: Falter, Account: lead}), err
}

// takeoverTime returns the protocol time from which the leader at place i of the line may
// take over what is due.
func (l *Lease) takeoverTime(i int) int64 { return l.DueSince + l.turns(i)*l.Params.LeadTimeout }

// idle reports whether the lead has left undone what is due for so long that the leader
// at place i may take over.
func (l *Lease) idle(i int, now int64) bool { return l.DueSince != 0 && now >= l.takeoverTime(i) }

// abandonedAt returns the protocol time at which a lease that nobody leads on is stopped.
func (l *Lease) abandonedAt() int64 { return l.takeoverTime(len(l.Leads)) }

// Decline is a lead's word, before it has assigned anything, that it does not serve the order after all.
// It has taken it on by its offer, and pays like a lead that stays idle; the consumer gets everything
// back. If the files cannot be had, their custodians say so: that ends the lease at the consumer's cost.
type Decline struct{ By, Reason string }

func (e Decline) apply(l *Lease, now int64) ([]Effect, error) {
	switch {
	case e.By != l.Lead():
		return nil, fmt.Errorf("%s does not lead this lease; %s does", e.By, l.Lead())
	case l.Phase != Active || l.Begun():
		return nil, fmt.Errorf("the lease is %v, or a unit was given out already: it can no longer be declined", l.Phase)
	case e.Reason == "" || len(e.Reason) > MaxText:
		return nil, fmt.Errorf("a reason of 1 to %d bytes must be given", MaxText)
	}
	effects, err := l.fineLead()
	if err != nil {
		return nil, err
	}
	l.stop(now, "declined: "+e.Reason)
	return append(effects, Effect{Emit, e.By, 0, "declined"}), nil
}
