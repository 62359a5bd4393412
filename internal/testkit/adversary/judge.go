package adversary

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tally-network/tally/core/job"
)

// bounds looks, after a block, for leases that outlast what their own rules allow.
func (p *play) bounds() {
	for i, o := range p.orders {
		l := p.live(i)
		if l == nil {
			continue
		}
		seats{p, o, l}.judge()
		if o.mind == nil && (len(l.Disputes) > 0 || p.Kind == Forced) {
			p.unjudged = true // nobody here can defend what is a mere name
		}
		for u := range l.Units {
			if n := l.Params.MaxAttempts; l.Units[u].Attempt > n {
				p.fail("endless", "a unit goes on after %d attempts of %d providers", n, len(l.Providers))
			}
		}
	}
}

// window is how long a lease can go on once everybody is silent, in ms: every wait
// that it or its disputes know, for as often as they can be due.
func window(l *job.Lease) int64 {
	c, r := &l.Order.Conditions, &l.Params
	games := int64(1 + len(l.Disputes))
	files := int64(min(l.Order.Problem.FileBytes()/r.Link, 1<<40)) * 1000 // to fetch them, at each draw of their custodians
	return files*int64(1+r.MaxLate) + r.LeadTimeout*int64(len(l.Leads)+1) + 4*c.UnitTimeout + 2*c.UnitWindow + c.Window +
		r.AnswerTime*int64(3+r.MaxLate+len(questions(l))) + 4*clock*games
}

// patience is how long anything that is open can stay so.
func (p *play) patience() int64 {
	most := int64(0)
	for i, o := range p.orders {
		most = max(most, o.Conditions.Expires)
		if l := p.live(i); l != nil {
			most = max(most, window(l))
		}
	}
	return most
}

// end lets everybody fall silent, on a branch, and then only the hostile ones; it
// looks for what never ends, who has lost and who has gained. Honest people do not go
// on where it would take them too long: then nobody's money is counted.
func (p *play) end() {
	if p.found != nil {
		return
	}
	silent := *p
	silent.ctx, _ = p.ctx.CacheContext()
	silent.views, silent.games, silent.orders = maps.Clone(p.views), maps.Clone(p.games), slices.Clone(p.orders)
	silent.unjudged = true // who is silent loses
	silent.silence()
	if p.found = silent.found; p.found != nil || p.units() > mostUnits {
		return
	}
	p.finish()
	if p.found == nil {
		p.export()
	}
	if p.found == nil {
		p.reckon()
	}
}

// mostUnits is how many units honest people do at the end of a history.
const mostUnits = 128

// units counts those of the leases that are open.
func (p *play) units() (n int) {
	for i := range p.orders {
		if l := p.live(i); l != nil {
			n += len(l.Units)
		}
	}
	return n
}

// silence lets time pass in which nobody does anything.
func (p *play) silence() {
	p.pass("after everybody was silent", 3, func() []Op { return nil })
}

// finish lets honest people go on alone until nothing is open.
func (p *play) finish() {
	p.alone = true
	p.pass("after honest people went on alone", 4*int64(1+p.units()), func() []Op {
		return slices.DeleteFunc(p.duties(), func(o Op) bool {
			_, hostile := p.script.Hostile[o.By]
			return hostile
		})
	})
}

// pass makes blocks until nothing is open: with what somebody does at once, or when
// something happens by itself. What is still open after so many times their windows is stuck.
func (p *play) pass(when string, times int64, due func() []Op) {
	const blocks = 3000
	begun, limit := p.clock(), int64(0)
	for range blocks {
		limit = max(limit, times*p.patience()) // a lease may still begin
		if p.refresh(); p.found != nil || p.quiet() {
			return
		}
		if p.clock()-begun > limit+60_000 {
			p.fail("stuck", "%s %s for longer than all its windows", p.what(), when)
			return
		}
		ops := due()
		wait := int64(2000)
		if len(ops) == 0 {
			wait = max(p.wake()-p.clock(), 1000)
		}
		p.next(wait)
		for _, o := range ops {
			p.do(o)
		}
		p.endBlock()
	}
	p.unjudged = true // its windows are too long for so few blocks
}

// wake is the next time at which anything changes by itself, in ms.
func (p *play) wake() int64 {
	at := int64(job.Never)
	for i, o := range p.orders {
		l := p.live(i)
		switch {
		case l != nil:
			for j := range l.Units { // forced draws are shown between a window and the time for them
				u := &l.Units[j]
				if end := u.WindowEnd; end > p.clock() {
					at = min(at, end)
				}
				if done := p.computed(l, u); u.Status == job.Assigned && done > p.clock() {
					at = min(at, done)
				}
			}
			if at = min(at, l.Wake()); l.DueSince > 0 { // somebody may take the lead
				at = min(at, l.DueSince+((p.clock()-l.DueSince)/l.Params.LeadTimeout+1)*l.Params.LeadTimeout)
			}
		case p.views[i] == nil && p.height < o.height+3: // it may still meet an offer
			at = min(at, p.clock()+1000)
		case p.views[i] == nil:
			at = min(at, p.clock()+o.Conditions.Expires)
		}
	}
	for _, g := range p.games {
		if wake := g.Game.Wake(); wake != job.Never { // else it waits for others
			at = min(at, wake+1)
		}
	}
	if at == job.Never {
		at = p.clock() + p.patience()
	}
	return at
}

// quiet reports whether nothing is open.
func (p *play) quiet() bool { return p.what() == "" }

// what says what is open.
func (p *play) what() string {
	for i, o := range p.orders {
		if l := p.live(i); l != nil {
			return fmt.Sprintf("a lease is %v", l.Phase)
		}
		if p.views[i] == nil && p.isOpen(o) {
			return "an order is open"
		}
	}
	if len(p.games) > 0 {
		return "a dispute is open"
	}
	return ""
}

// isOpen reports whether an order waits for an offer.
func (p *play) isOpen(o *order) bool {
	_, posting, err := p.Market.Order(p.ctx, o.id)
	if err != nil {
		p.fail("unreadable", "an order: %v", err)
		return false
	}
	return posting.Escrow > 0
}

// export reads all that is stored.
func (p *play) export() {
	defer func() {
		if r := recover(); r != nil {
			p.fail("unreadable", "the exported state: %v", r)
		}
	}()
	if _, err := p.Export(p.at(p.ctx)); err != nil {
		p.fail("unreadable", "the exported state: %v", err)
	}
}

// reckon compares what people own with what they owned.
func (p *play) reckon() {
	bought, earned := map[string]uint64{}, map[string]uint64{}
	for i, o := range p.orders {
		l := p.views[i]
		if _, hostile := p.script.Hostile[o.poster]; hostile || l == nil {
			continue
		}
		bought[o.poster] += l.Quote.Price + l.Deposit - l.Ledger.Refund
		for _, s := range slices.Concat(l.Ledger.Paid, l.Ledger.Prizes) { // out of what the consumer paid, the tax included
			earned[nameOf(s.Account)] += s.Amount
		}
	}
	var before, after, missed uint64
	for _, name := range slices.Concat(everybody, crowd) {
		has, had := p.wealth(name), p.had[name]
		if p.Trace != nil && has+bought[name] != had {
			p.Trace("%s owns %d more than before", name, int64(has+bought[name]-had))
		}
		if _, hostile := p.script.Hostile[name]; hostile {
			before, after = before+had+earned[name], after+has
			continue
		}
		if has+bought[name] >= had {
			continue
		}
		if p.jumped || p.unjudged || p.outvoted() { // what it missed may be others' reward
			missed += had - has - bought[name]
		} else {
			p.fail("loss", "%s, who is honest, has lost money", roleOf(name))
			p.found.Detail += fmt.Sprintf(" (%s %d)", name, had-has-bought[name])
		}
	}
	if after > before+missed {
		p.fail("gain", "hostile people gained without work")
		p.found.Detail += fmt.Sprintf(" (%d)", after-before-missed)
	}
}

// outvoted reports whether a third of the validators are hostile: these can stop the
// chain, and be the majority of those who are drawn to keep a unit.
func (p *play) outvoted() bool {
	all, bad := slices.Concat(leads, others), 0
	for _, v := range all {
		if _, hostile := p.script.Hostile[v]; hostile {
			bad++
		}
	}
	return 3*bad >= len(all)
}

// roleOf names what an account is.
func roleOf(name string) string {
	switch {
	case slices.Contains(house0, name) || slices.Contains(house1, name) || slices.Contains(crowd, name):
		return "a provider"
	case slices.Contains(leads, name) || slices.Contains(others, name):
		return "a validator"
	case name == challenger:
		return "a challenger"
	}
	return "a consumer"
}

// burden compares what an order asks custodians to hold with what it pays.
func (p *play) burden() {
	o := p.orders[len(p.orders)-1]
	bytes := float64(0)
	for _, f := range o.Problem.Files {
		bytes += float64(f.Size)
	}
	const least, each = 10 << 30, 1_000_000 // bytes for nothing, and for an utally: 10 GiB, and a terabyte for a tally
	if bytes > max(least, each*float64(o.Conditions.MaxPrice)) {
		p.fail("burden", "custodians of an order hold far more than it pays for")
		p.found.Detail += fmt.Sprintf(" (%.3g bytes for at most %d utally)", bytes, o.Conditions.MaxPrice)
	}
}
