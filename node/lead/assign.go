package lead

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/node/leases"
	"github.com/tally-network/tally/node/role"
)

// answer is what a provider says to an offer.
type answer struct {
	provider string
	taken    workv1.Assignment
	err      error
}

// lull is how long units that were taken wait for others that are posted with them.
const lull = 50 * time.Millisecond

// assign gives the open units of the round to those that wait for one, offers the others, all at once,
// and posts what was accepted. Who answers late holds up nobody else.
func (d *lead) assign(ctx context.Context, l *job.Lease, now int64) error {
	if l.Order.Conditions.Replicas > 0 {
		return d.giveOut(ctx, l)
	}
	plan := d.pace.plan(l, now)
	d.pace.pass(l)
	waits := l.Waits()
	var taken []workv1.Assignment
	for _, w := range waits { // first, and in order: they have accepted on chain
		for unit, provider := range plan {
			if provider == w {
				taken = append(taken, workv1.Assignment{Unit: uint32(unit), Attempt: uint32(l.Units[unit].Attempt), Provider: w})
			}
		}
	}
	answers, offered := make(chan answer, len(plan)), 0
	for unit, provider := range plan {
		if slices.Contains(waits, provider) {
			continue
		}
		offered++
		go func() {
			a, err := d.offer(ctx, l, unit, provider)
			if err != nil {
				err = fmt.Errorf("offer unit %d to %s: %w", unit, provider, err)
			}
			answers <- answer{provider, a, err}
		}()
	}
	return d.pace.collect(answers, offered, taken, func(taken []workv1.Assignment) error { return d.post(ctx, l, taken) })
}

// collect posts units that are taken, and then those that so many answers take, as they come.
func (p *pace) collect(answers <-chan answer, offered int, taken []workv1.Assignment, post func([]workv1.Assignment) error) error {
	took := map[string]bool{} // whether a provider took any of what it was offered
	var refused, failed error
	for offered > 0 || len(taken) > 0 {
		var quiet <-chan time.Time
		if len(taken) > 0 {
			quiet = time.After(lull)
		}
		select {
		case a := <-answers:
			offered--
			took[a.provider] = took[a.provider] || a.err == nil
			if a.err != nil {
				refused = a.err
				continue
			}
			p.accept(a.provider)
			taken = append(taken, a.taken)
		case <-quiet:
			failed = errors.Join(failed, post(taken))
			taken = nil
		}
	}
	for provider, some := range took { // whatever their number, offers of one turn are one
		if !some {
			p.refuse(provider)
		}
	}
	return errors.Join(refused, failed)
}

// post posts assignments: all at once, or if the chain refuses that, each by
// itself, so that a provider that may get no work does not hold up the others.
func (d *lead) post(ctx context.Context, l *job.Lease, taken []workv1.Assignment) error {
	err := d.env.Send(ctx, &workv1.MsgAssign{Lead: d.env.Account.Address, Order: l.Order.ID().String(), Units: taken})
	if err == nil {
		for _, a := range taken {
			if a.Provider != "" {
				d.pace.accept(a.Provider)
			}
		}
		return d.sponsor(ctx, l, providersOf(taken))
	}
	if len(taken) == 1 {
		switch a := taken[0]; {
		case a.Provider == "": // places of replicas are drawn
		case len(a.Signature) > 0:
			d.pace.refuse(a.Provider)
		default: // it waits, and has accepted on chain
			d.pace.deny(a.Provider)
		}
		return fmt.Errorf("assign unit %d: %w", taken[0].Unit, err)
	}
	var failed error
	for i := range taken {
		failed = errors.Join(failed, d.post(ctx, l, taken[i:i+1]))
	}
	return failed
}

// sponsor lets those that have work now, but no money for fees, post what becomes
// of it. What one may use up follows what it has done: it chooses itself what it pays
// for gas.
func (d *lead) sponsor(ctx context.Context, l *job.Lease, providers []string) error {
	var failed error
	for _, a := range providers {
		if !d.pace.sponsors(l, a) {
			continue
		}
		granted, err := d.env.Account.Sponsor(ctx, a, sponsored)
		failed = errors.Join(failed, err)
		if granted {
			d.pace.granted(l, a)
		}
	}
	return failed
}

// unitsPerGrant is how many units of a provider must have been accepted for each grant
// of first fees after the first one of a lease: a unit takes few transactions, and a
// grant pays for hundreds.
const unitsPerGrant = 64

// sponsors reports whether the lead of a lease would grant a provider fees now.
func (p *pace) sponsors(l *job.Lease, provider string) bool {
	done := 0
	for i := range l.Units {
		if u := &l.Units[i]; u.Provider == provider && u.Status == job.Accepted {
			done++
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.grants[l.Order.ID()][provider] <= done/unitsPerGrant
}

func (p *pace) granted(l *job.Lease, provider string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	order := l.Order.ID()
	if p.grants[order] == nil {
		p.grants[order] = map[string]int{}
	}
	p.grants[order][provider]++
}

// sponsored are the messages of providers, with which units go on.
var sponsored = []string{sdk.MsgTypeURL(&workv1.MsgSubmit{}), sdk.MsgTypeURL(&workv1.MsgCommit{}), sdk.MsgTypeURL(&workv1.MsgReveal{}),
	sdk.MsgTypeURL(&workv1.MsgProveDraw{}), sdk.MsgTypeURL(&workv1.MsgReady{}), sdk.MsgTypeURL(&disputev1.MsgMove{})}

// patience is how long an offer waits for its answer.
const patience = 5 * time.Second

func (d *lead) offer(ctx context.Context, l *job.Lease, unit int, provider string) (workv1.Assignment, error) {
	to, err := d.env.Peers.Reach(ctx, provider)
	if err != nil {
		return workv1.Assignment{}, err
	}
	attempt := l.Units[unit].Attempt
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a, err := role.Offers.Call(ctx, d.env.Host, to, role.UnitOffer{Order: l.Order.ID(), Unit: unit, Attempt: attempt})
	if err != nil {
		return workv1.Assignment{}, err
	}
	if len(a.Signature) == 0 {
		return workv1.Assignment{}, fmt.Errorf("it does not take the unit: %s", a.Reason)
	}
	return workv1.Assignment{Unit: uint32(unit), Attempt: uint32(attempt), Provider: provider, Signature: a.Signature}, nil
}

// pace remembers how long providers take for a unit, in protocol time, and who did
// not take or get one lately. A unit that a provider was given in vain, because it did
// not deliver or nobody could get its data, took it all that time.
type pace struct {
	mu      sync.Mutex
	units   map[canon.Hash][]given        // by order and unit
	took    map[string]float64            // ms a unit, by provider
	refused map[string]backoff            // who takes no offers, or takes them and gets nothing of the chain
	denied  map[string]backoff            // who waits and gets nothing of the chain
	grants  map[canon.Hash]map[string]int // of fees, by order and provider
}

// backoff is how often in a row a provider failed, and the turns that it still sits out for that.
type backoff struct{ failures, skips int }

// fail lets it sit out twice as many turns as the last time, up to a number of failures.
func (b backoff) fail(most int) backoff {
	n := min(b.failures+1, most)
	return backoff{n, 1<<n - 1}
}

// Failures in a row that count. A lead that does not serve who waits is fined, so these sit out few turns.
const maxRefused, maxDenied = 6, 2

// given is an attempt of a unit as it was last seen; no provider if there was
// none.
type given struct {
	attempt  int
	provider string
	begun    int64
	status   job.Status
}

func newPace() *pace {
	return &pace{units: map[canon.Hash][]given{}, took: map[string]float64{}, refused: map[string]backoff{}, denied: map[string]backoff{}, grants: map[canon.Hash]map[string]int{}}
}

// keep forgets all orders but those of the given leases.
func (p *pace) keep(all []leases.Lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	live := map[canon.Hash]bool{}
	for _, l := range all {
		live[l.Order.ID()] = true
	}
	maps.DeleteFunc(p.units, func(order canon.Hash, _ []given) bool { return !live[order] })
	maps.DeleteFunc(p.grants, func(order canon.Hash, _ map[string]int) bool { return !live[order] })
}

// see learns from the lease as it stands at protocol time now.
func (p *pace) see(l *job.Lease, now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	order := l.Order.ID()
	if p.units[order] == nil {
		p.units[order] = make([]given, len(l.Units))
	}
	for i := range l.Units {
		u, g := &l.Units[i], &p.units[order][i]
		if g.provider != "" && g.attempt != u.Attempt {
			if g.status < job.Counted { // else it was voided, which says nothing
				p.learn(g.provider, now-g.begun)
			}
			*g = given{}
		}
		switch {
		case g.provider == "" && u.Status != job.Open:
			*g = given{u.Attempt, u.Provider, now, u.Status}
		case g.status == job.Assigned && u.Status > job.Assigned:
			p.learn(u.Provider, now-g.begun)
			g.status = u.Status
		case g.provider != "":
			g.status = u.Status
		}
	}
}

func (p *pace) learn(provider string, ms int64) {
	took := float64(max(ms, 1))
	if old, ok := p.took[provider]; ok {
		took = 0.5*old + 0.5*took
	}
	p.took[provider] = took
}

// refuse notes that a provider did not take what it was offered.
func (p *pace) refuse(provider string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused[provider] = p.refused[provider].fail(maxRefused)
}

// deny notes that the chain gives a provider nothing, though it waits.
func (p *pace) deny(provider string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.denied[provider] = p.denied[provider].fail(maxDenied)
}

func (p *pace) accept(provider string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.refused, provider)
	delete(p.denied, provider)
}

// pass ends a turn of a lease: its providers have sat it out.
func (p *pace) pass(l *job.Lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, of := range []map[string]backoff{p.refused, p.denied} {
		for _, x := range l.Providers {
			if b := of[x.Account]; b.skips > 0 {
				of[x.Account] = backoff{b.failures, b.skips - 1}
			}
		}
	}
}

// plan gives each provider that waits one open unit of the round, whatever it said to offers: the
// chain lets nobody else have one before it. Every other unit goes to the
// provider that would finish it first, given what it has to do already. If that has as many as
// it may, the unit waits for it, but not so long that the lead would seem idle.
func (p *pace) plan(l *job.Lease, now int64) map[int]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	load := map[string]int{}
	for _, u := range l.RoundUnits() {
		if u.Status == job.Assigned {
			load[u.Provider]++
		}
	}
	queue, out := l.Waits(), map[int]string{}
	waits := slices.DeleteFunc(slices.Clone(queue), func(a string) bool { return !l.MayWork(a) || p.denied[a].skips > 0 })
	var able []string
	for _, x := range l.Providers {
		if a := x.Account; l.MayWork(a) && p.refused[a].skips == 0 && !slices.Contains(queue, a) {
			able = append(able, a)
		}
	}
	patient := l.DueSince == 0 || now-l.DueSince < l.Params.LeadTimeout/2
	for s, u := range l.RoundUnits() {
		if u.Status != job.Open {
			continue
		}
		unit := l.Unit(l.Round, s)
		if i := slices.IndexFunc(waits, func(a string) bool { return !l.Withheld(unit, a) }); i >= 0 {
			out[unit] = waits[i]
			waits = slices.Delete(waits, i, i+1)
			continue
		}
		best, bestTime := "", 0.0
		for _, a := range able {
			if load[a] >= l.Params.MaxOpen && !patient || l.Withheld(unit, a) {
				continue
			}
			if t := float64(load[a]+1) * p.usual(a); best == "" || t < bestTime {
				best, bestTime = a, t
			}
		}
		if best == "" || load[best] >= l.Params.MaxOpen {
			continue
		}
		out[unit] = best
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
