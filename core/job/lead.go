package job

import (
	"fmt"
	"slices"
)

// TakeLead lets a validator of the drawn succession take over from a lead that
// did not do what was due: the k-th in line after k timeouts, the next at once
// if the lead was dismissed.
type TakeLead struct{ By string }

func (e TakeLead) apply(l *Lease, now int64) ([]Effect, error) {
	i := l.inLine(e.By)
	if l.Phase != Active || i <= l.LeadIndex {
		return nil, fmt.Errorf("%s is not next in line to lead this lease", e.By)
	}
	if may := l.mayTakeLead(i); l.DueSince == 0 || now < may {
		return nil, fmt.Errorf("%s may take the lead from block time %d ms on if the lead stays idle", e.By, may)
	}
	bond, err := l.bond()
	if err != nil {
		return nil, err
	}
	var effects []Effect
	if old := &l.Leads[l.LeadIndex]; !old.Gone {
		penalty, err := scale(l.Quote.Unit, l.Params.LateBps, bps)
		if err != nil {
			return nil, err
		}
		penalty = min(penalty, old.Bond)
		old.Bond -= penalty
		effects = l.slash(old.Account, penalty, []Share{{Insurance, penalty}})
	}
	l.LeadIndex = i
	l.Leads[i].Bond = bond
	l.DueSince = 0
	l.watchLead(now)
	return append(effects, Effect{Reserve, e.By, bond, "lead"}, Effect{Emit, e.By, uint64(i), "lead taken over"}), nil
}

// mayTakeLead returns the block time from which the leader at place i of the
// line may take over.
func (l *Lease) mayTakeLead(i int) int64 {
	wait := int64(i - l.LeadIndex)
	if l.Leads[l.LeadIndex].Gone {
		wait--
	}
	return l.DueSince + wait*l.Params.LeadTimeout
}

// abandonedAt returns the block time at which a lease that nobody leads on is
// stopped.
func (l *Lease) abandonedAt() int64 { return l.mayTakeLead(len(l.Leads)) }

// dismiss takes the lead's office, if account holds it, and returns the bond
// that it forfeits.
func (l *Lease) dismiss(account string) (bond uint64) {
	for i := range l.Leads {
		if d := &l.Leads[i]; d.Account == account {
			bond, d.Bond, d.Gone = d.Bond, 0, true
		}
	}
	l.DueSince = 0
	return bond
}

// gone reports whether a lead was dismissed: it has no bond to lose.
func (l *Lease) gone(lead string) bool {
	return slices.ContainsFunc(l.Leads, func(d Leader) bool { return d.Account == lead && d.Gone })
}

// Decline is a lead's word, before it has assigned anything, that the order
// cannot be served: its files cannot be had or do not match it. Nobody is at
// fault that the chain could name, so the consumer gets everything back.
type Decline struct{ By, Reason string }

func (e Decline) apply(l *Lease, now int64) ([]Effect, error) {
	switch {
	case e.By != l.Lead():
		return nil, fmt.Errorf("%s does not lead this lease; %s does", e.By, l.Lead())
	case l.Phase != Active || l.Begun():
		return nil, fmt.Errorf("the lease is %v and its work has begun: it can no longer be declined", l.Phase)
	case e.Reason == "" || len(e.Reason) > MaxText:
		return nil, fmt.Errorf("a reason of 1 to %d bytes must be given", MaxText)
	}
	l.stop(now, "declined: "+e.Reason)
	return []Effect{{Emit, e.By, 0, "declined"}}, nil
}
