package job

import (
	"errors"
	"fmt"
	"slices"
)

// Ready is the word of an idle provider that it takes the next unit: a standing
// acceptance, for who feels passed over. While it waits, no provider gets a unit that has had as
// many in the round or more. So a lead cannot keep the work for those it likes.
type Ready struct {
	Provider string
	Withdraw bool // the word is taken back
}

// Waiting is a provider that has said that it is ready.
type Waiting struct {
	Provider string
	Since    int64 // protocol time, ms
}

func (e Ready) apply(l *Lease, now int64) ([]Effect, error) {
	at := l.queued(e.Provider)
	switch {
	case e.Withdraw && at < 0:
		return nil, fmt.Errorf("%s does not wait for a unit", e.Provider)
	case e.Withdraw:
		l.Queue = slices.Delete(l.Queue, at, at+1)
		return []Effect{{Emit, e.Provider, 0, "not ready"}}, nil
	case l.Phase != Active:
		return nil, fmt.Errorf("the lease is %v: no more units are given out", l.Phase)
	case l.replicated():
		return nil, errors.New("who computes units of this lease is drawn: nobody can be passed over")
	case l.Files.Said != Had:
		return nil, errFiles
	case at >= 0:
		return nil, fmt.Errorf("%s waits for a unit already", e.Provider)
	case find(l.Providers, e.Provider) == nil || !l.MayWork(e.Provider):
		return nil, fmt.Errorf("%s is not a provider of this lease, or may get no unit now", e.Provider)
	case l.openUnits(e.Provider) > 0:
		return nil, fmt.Errorf("%s has a unit to compute: only who has none may wait for the next", e.Provider)
	}
	l.Queue = append(l.Queue, Waiting{e.Provider, now})
	return []Effect{{Emit, e.Provider, 0, "ready"}}, nil
}

// Waits returns who waits for a unit, in the order in which they must be served.
func (l *Lease) Waits() (out []string) {
	for _, w := range l.Queue {
		out = append(out, w.Provider)
	}
	slices.SortStableFunc(out, func(a, b string) int { return l.had(a) - l.had(b) })
	return out
}

// queued returns the place of a provider among those that wait, −1 if it does not.
func (l *Lease) queued(provider string) int {
	return slices.IndexFunc(l.Queue, func(w Waiting) bool { return w.Provider == provider })
}

// served returns who waits and can take a unit, in the order in which they must be served. Who began to wait
// in this block is not among them: an assignment could not know. An assignment changes this for nobody
// but whom it serves, so it is worked out once for all its units.
func (l *Lease) served(waiting []Standing, now int64) []string {
	able := make(map[string]bool, len(waiting))
	for _, s := range waiting {
		_, _, err := l.stand(s, nil)
		able[s.Provider] = err == nil && l.MayWork(s.Provider)
	}
	for _, w := range l.Queue {
		able[w.Provider] = able[w.Provider] && w.Since < now
	}
	return slices.DeleteFunc(l.Waits(), func(p string) bool { return !able[p] })
}

// before returns who of those that are served must have a unit before the given provider, "" if nobody: who
// has had fewer units of the round; of equals, who waits before who does not, and longer before shorter.
// Who could not take this unit is passed by.
func (l *Lease) before(unit int, provider string, served []string) string {
	i := slices.IndexFunc(served, func(p string) bool { return !l.Withheld(unit, p) })
	if i < 0 || served[i] == provider {
		return ""
	}
	at, less := l.queued(provider), l.had(served[i])-l.had(provider)
	if less < 0 || less == 0 && (at < 0 || l.queued(served[i]) < at) {
		return served[i]
	}
	return ""
}

// MayWork reports whether a provider of the lease is neither barred nor suspended.
func (l *Lease) MayWork(provider string) bool {
	return !slices.Contains(l.Barred, provider) && !l.Suspended(provider)
}
