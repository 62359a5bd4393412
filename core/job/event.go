package job

import (
	"errors"
	"fmt"
	"slices"
)

// Event is something that happens to a lease.
type Event interface {
	apply(l *Lease, now int64) ([]Effect, error)
}

// ErrEnded is returned for an event after the lease has ended.
var ErrEnded = errors.New("the lease has ended")

// Apply lets an event happen at protocol time now. On an error nothing has
// happened.
func Apply(l Lease, e Event, now int64) (Lease, []Effect, error) {
	if l.Phase == Settled {
		return l, nil, ErrEnded
	}
	next := l.clone()
	next.look()
	effects, err := e.apply(&next, now)
	if err != nil {
		return l, nil, err
	}
	next.count()
	if l.Count.shut() && !next.Count.shut() {
		next.OpenSince = now
	}
	next.sight = l.sight
	return next, effects, nil
}

// current returns unit i if the given attempt is the current one and has one of
// the wanted statuses.
func (l *Lease) current(i, attempt int, want ...Status) (*Unit, error) {
	if i < 0 || i >= len(l.Units) {
		return nil, fmt.Errorf("the order has no unit %d", i)
	}
	u := &l.Units[i]
	if u.Attempt != attempt {
		return nil, fmt.Errorf("attempt %d of unit %d is not under way; attempt %d is", attempt, i, u.Attempt)
	}
	if !slices.Contains(want, u.Status) {
		return nil, fmt.Errorf("unit %d is %v, not %v", i, u.Status, want[0])
	}
	return u, nil
}

// watchLead starts the lead's clock if it has something to do, and stops it if
// not.
func (l *Lease) watchLead(now int64) {
	if !l.leadMustAct() {
		l.DueSince = 0
	} else if l.DueSince == 0 {
		l.DueSince = now
	}
}

// leadMustAct reports whether nothing goes on without the lead: a round waits for its
// merge, or all that is left of it for providers. While others are at work, a provider
// to whom the lead gives nothing says that it is ready (waitedFor).
func (l *Lease) leadMustAct() bool {
	l.count()
	if l.AwaitsMerge() {
		return true
	}
	c := &l.Count
	if l.Phase != Active || l.Files.Said != Had || l.Round == len(l.Merges) {
		return false
	}
	if l.Leads[l.LeadIndex].Gone {
		return true
	}
	if c.Status[Open] == 0 || c.Status[Open]+c.Status[Accepted] < l.Order.Problem.Shards {
		return false
	}
	return slices.ContainsFunc(l.Eligible(), l.opensFor) // others have as many as they may, or must answer first
}
