package lead

import (
	"context"
	"fmt"
	"sync"

	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/node/role"
)

// assign offers the open units of the round, all at once, and posts what was
// accepted.
func (d *lead) assign(ctx context.Context, l *job.Lease) error {
	plan := d.pace.plan(l)
	if len(plan) == 0 {
		return nil // every provider has as many as it may
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var taken []workv1.Assignment
	var refused error
	for unit, provider := range plan {
		wg.Add(1)
		go func() {
			defer wg.Done()
			a, err := d.offer(ctx, l, unit, provider)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				d.pace.refuse(provider)
				refused = fmt.Errorf("offer unit %d to %s: %w", unit, provider, err)
				return
			}
			taken = append(taken, a)
		}()
	}
	wg.Wait()
	if len(taken) == 0 {
		return refused
	}
	_, err := d.kit.Account.Send(ctx, &workv1.MsgAssign{Lead: d.kit.Account.Address, Order: l.Order.ID().String(), Units: taken})
	if err != nil {
		return fmt.Errorf("assign %d units: %w", len(taken), err)
	}
	return refused
}

func (d *lead) offer(ctx context.Context, l *job.Lease, unit int, provider string) (workv1.Assignment, error) {
	to, err := d.kit.Reach(ctx, provider)
	if err != nil {
		return workv1.Assignment{}, err
	}
	attempt := l.Units[unit].Attempt
	a, err := role.Offers.Call(ctx, d.kit.Host, to, role.UnitOffer{Order: l.Order.ID(), Unit: unit, Attempt: attempt})
	if err != nil {
		return workv1.Assignment{}, err
	}
	if len(a.Signature) == 0 {
		return workv1.Assignment{}, fmt.Errorf("it does not take the unit: %s", a.Reason)
	}
	return workv1.Assignment{Unit: uint32(unit), Attempt: uint32(attempt), Provider: provider, Signature: a.Signature}, nil
}

// pace remembers how long providers take for a unit, in block time, and who did
// not take one lately.
type pace struct {
	mu      sync.Mutex
	seen    map[unitKey]int64  // when a unit was first seen assigned
	took    map[string]float64 // ms a unit, by provider
	refused map[string]int     // offers in a row that a provider did not take
}

type unitKey struct {
	order         string
	unit, attempt int
}

func newPace() *pace {
	return &pace{seen: map[unitKey]int64{}, took: map[string]float64{}, refused: map[string]int{}}
}

// see learns from the lease as it stands at block time now.
func (p *pace) see(l *job.Lease, now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	order := l.Order.ID().String()
	for i := range l.Units {
		u := &l.Units[i]
		key := unitKey{order, i, u.Attempt}
		begun, known := p.seen[key]
		switch {
		case u.Status == job.Assigned && !known:
			p.seen[key] = now
		case u.Status >= job.Received && known:
			took := float64(max(now-begun, 1))
			if old, ok := p.took[u.Provider]; ok {
				took = 0.5*old + 0.5*took
			}
			p.took[u.Provider] = took
			delete(p.seen, key)
		}
	}
}

func (p *pace) refuse(provider string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused[provider]++
}

// plan gives each open unit of the round to the provider that would finish it
// first, given what it has to do already. One that did not take its last offers
// sits out as many turns.
func (p *pace) plan(l *job.Lease) map[int]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	load := map[string]int{}
	for _, u := range l.RoundUnits() {
		if u.Status == job.Assigned {
			load[u.Provider]++
		}
	}
	out := map[int]string{}
	var idle []string
	for _, a := range l.Eligible() {
		if p.refused[a] > 0 {
			p.refused[a]--
			continue
		}
		idle = append(idle, a)
	}
	for s, u := range l.RoundUnits() {
		if u.Status != job.Open {
			continue
		}
		best, bestTime := "", 0.0
		for _, a := range idle {
			if load[a] >= l.Params.MaxOpen {
				continue
			}
			t := float64(load[a]+1) * p.usual(a)
			if best == "" || t < bestTime {
				best, bestTime = a, t
			}
		}
		if best == "" {
			break
		}
		out[l.Unit(l.Round, s)] = best
		load[best]++
	}
	return out
}

// usual returns the time that a provider takes for a unit; one that is not known
// yet is thought to be as fast as the fastest.
func (p *pace) usual(provider string) float64 {
	if t, ok := p.took[provider]; ok {
		return t
	}
	fastest := 1.0
	for _, t := range p.took {
		if fastest == 1 || t < fastest {
			fastest = t
		}
	}
	return fastest
}
