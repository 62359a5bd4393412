package market

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"github.com/tally-network/tally/core/auction"
	"github.com/tally-network/tally/core/book"
	"github.com/tally-network/tally/core/demand"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/money"
	"github.com/tally-network/tally/core/team"
)

// part is what one provider computes of a lease.
type part struct {
	provider int32
	units    uint64 // of the order, or of capacity at a clearing
	pay      uint64 // utally
	took     uint64 // ms
	flops    uint64
}

// lease is an order that is computed.
type lease struct {
	order  *order
	lead   int32
	quote  job.Quote // what it costs: each provider is paid by its own rates, all else by the same shares
	parts  []part
	ends   int64
	profit float64 // what it is worth less what it costs those who compute it, utally
}

type running []*lease

func (q running) Len() int           { return len(q) }
func (q running) Less(i, j int) bool { return q[i].ends < q[j].ends }
func (q running) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *running) Push(x any)        { *q = append(*q, x.(*lease)) }
func (q *running) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}

// match tries as many open orders as a block does with as many offers: those never tried and those that were, by turns.
func (e *economy) match() error {
	if len(e.book[0])+len(e.book[1]) == 0 {
		return nil
	}
	seen := e.look()
	for tries, turn := 0, int(e.block%2); tries < book.MaxTries; turn = 1 - turn {
		q := &e.book[turn]
		if len(*q) == 0 || (*q)[0].at > e.now {
			if q = &e.book[1-turn]; len(*q) == 0 || (*q)[0].at > e.now {
				return nil
			}
		}
		o := heap.Pop(q).(*order)
		tries++
		if o.posted+o.Conditions.Expires <= e.now {
			e.refund(o)
			continue
		}
		met, err := e.lease(o, seen)
		if err != nil {
			return err
		}
		if !met {
			o.delay = book.Wait(o.delay)
			o.at = e.now + o.delay
			heap.Push(&e.book[1], o)
		}
	}
	return nil
}

// look returns the validators whose offers a block looks at: with as many providers as it may.
func (e *economy) look() (seen []int32) {
	peers := 0
	for range min(len(e.validators), book.MaxOffers) {
		if peers >= book.MaxPeers {
			break
		}
		v := &e.validators[e.cursor]
		seen = append(seen, int32(e.cursor))
		peers += len(v.team)
		e.cursor = (e.cursor + 1) % len(e.validators)
		if at := int(e.now / period); v.asked != at {
			slices.SortFunc(v.team, func(a, b int32) int {
				return cmp.Or(cmp.Compare(e.providers[a].ask, e.providers[b].ask), cmp.Compare(a, b))
			})
			v.asked = at
		}
	}
	return seen
}

// lease gives an order to the best offer that meets it.
func (e *economy) lease(o *order, seen []int32) (met bool, err error) {
	var offers []book.Offer
	teams := map[string][]int32{}
	at := map[string]int32{}
	prices := map[string]team.Price{}
	for _, i := range seen {
		v := &e.validators[i]
		var idle []int32
		for _, m := range v.team {
			if x := &e.providers[m]; x.free <= e.now && x.tier <= o.kind {
				if idle = append(idle, m); len(idle) == o.Conditions.Needs.Most {
					break
				}
			}
		}
		if len(idle) < o.Conditions.MinProviders {
			continue
		}
		terms := team.Terms{Order: &o.Order, FeeBps: v.fee, Rules: &e.rules}
		n, p, err := terms.Afford(len(idle), func(n int) job.Rates { return job.Rates{GFLOP: e.providers[idle[n-1]].ask} }, o.Conditions.MaxPrice)
		if err != nil {
			continue // no price for it
		}
		offers = append(offers, book.Offer{Validator: v.name, Price: p.Price, Since: v.since, Providers: n, Referees: len(e.validators) - 1})
		teams[v.name], at[v.name], prices[v.name] = idle[:n], i, p
	}
	best, ok := book.Best(o.Conditions.Bid(), offers)
	if !ok {
		return false, nil
	}
	return true, e.begin(o, at[best.Validator], teams[best.Validator], prices[best.Validator])
}

// begin begins the lease of an order with a team: each round is done when the slowest of it is.
func (e *economy) begin(o *order, lead int32, members []int32, p team.Price) error {
	l := &lease{order: o, lead: lead, quote: p.Quote}
	speeds := make([]uint64, len(members))
	var all uint64
	for i, m := range members {
		speeds[i] = e.providers[m].speed
		all += speeds[i]
	}
	takes, _ := o.Plan().Takes(speeds)
	l.ends = e.now + int64(min(takes, 1<<40))
	left := uint64(o.Problem.Units())
	for i, m := range members {
		x := &e.providers[m]
		units := min(left, uint64(math.Round(float64(o.Problem.Units())*float64(speeds[i])/float64(all))))
		if i == len(members)-1 {
			units = left
		}
		left -= units
		pay, err := job.Rates{GFLOP: x.ask}.Pay(o.Problem.UnitFLOPs(), 0)
		if err != nil {
			return err
		}
		flops := units * o.Problem.UnitFLOPs()
		l.parts = append(l.parts, part{provider: m, units: units, pay: units * pay, took: flops / max(x.speed/1000, 1), flops: flops})
	}
	e.start(l)
	h := &e.tally.Book
	h.add(o, l.quote.Price)
	return nil
}

// start lets a lease's providers work.
func (e *economy) start(l *lease) {
	o := l.order
	surplus := o.Conditions.MaxPrice - l.quote.Price
	e.escrow -= surplus
	e.purse += surplus
	l.profit = float64(o.value)
	for _, p := range l.parts {
		x := &e.providers[p.provider]
		x.free = max(x.free, e.now) + int64(p.took)
		x.sold = x.sold || p.units > 0
		cost := x.cost * (p.flops / giga)
		l.profit -= float64(cost)
		x.spent += cost
		e.tally.Used += float64(p.flops)
	}
	e.tally.Matched++
	e.tally.Welfare += l.profit
	b := &e.buyers[of(o.shades)]
	b.Served++
	b.Gain += float64(o.value) - float64(l.quote.Price)
	heap.Push(&e.running, l)
}

// settle pays for the leases that have ended, burns, and credits: all by the tariff, in proportion to what providers are paid.
func (e *economy) settle() error {
	for len(e.running) > 0 && e.running[0].ends <= e.now {
		l := heap.Pop(&e.running).(*lease)
		q, problem, conditions := &l.quote, &l.order.Problem, &l.order.Conditions
		work := q.Unit * uint64(problem.Units())
		var pay uint64
		for _, p := range l.parts {
			pay += p.pay
		}
		part := func(of uint64) (uint64, error) { return money.ScaleDown(of, pay, work) }
		care, err1 := part(q.Honest - work - q.Fee)
		fee, err2 := part(q.Fee)
		burn, err3 := part(q.Burn)
		tax, err4 := part(q.Tax)
		credited, err5 := q.Credited(problem, conditions, e.rules.Tariff)
		for _, err := range []error{err1, err2, err3, err4, err5} {
			if err != nil {
				return err
			}
		}
		for _, p := range l.parts {
			x := &e.providers[p.provider]
			x.earned += p.pay
			own, err := money.ScaleDown(credited, p.pay, max(pay, 1))
			if err != nil {
				return err
			}
			x.flops += own
			e.tally.Credited += float64(own)
			if p.took > 0 {
				x.pace.AddWork(p.flops)
				x.pace.AddTime(p.took)
				x.setTier()
			}
		}
		judge := e.r.IntN(len(e.validators))
		e.validators[judge].earned += care
		e.validators[l.lead].earned += fee
		e.paid += pay + care + fee
		e.pool += tax
		e.burnt += burn
		e.tally.Burnt += burn
		refund := q.Price - pay - care - fee - burn - tax
		e.escrow -= q.Price
		e.purse += refund
		e.tally.Settled++
	}
	return nil
}

// auctioneer keeps the memory of clearings.
type auctioneer struct {
	tasks     []auction.Task
	providers []auction.Provider
	sellers   []int32  // of each place of a book
	orders    []*order // likewise
}

// ageing moves an order that has lost clearings forward, as on a new chain.
var ageing = auction.Params{AgeStep: 1_000, AgeMost: 10}

// clear sells the capacity of the next period to those who wait.
func (e *economy) clear() error {
	m := &e.market
	m.tasks, m.providers, m.sellers, m.orders = m.tasks[:0], m.providers[:0], m.sellers[:0], m.orders[:0]
	var still []*order
	for _, o := range e.waiting {
		if o.posted+o.Conditions.Expires <= e.now {
			e.refund(o)
			continue
		}
		still = append(still, o)
		terms := demand.Terms{FeeBps: maxFee, Balance: balance, Rules: &e.rules, Stake: math.MaxUint64} // stakes are not played
		d, err := terms.Of(&o.Order)
		if err != nil {
			continue // it can pay nobody
		}
		t := auction.Task{ID: id(len(m.orders)), Budget: d.Budget, Fee: d.Fee, Age: o.age}
		t.Demand[o.kind] = d.Units
		m.tasks, m.orders = append(m.tasks, t), append(m.orders, o)
	}
	e.waiting = still
	for i := range e.providers {
		x := &e.providers[i]
		if x.free > e.now {
			continue
		}
		p := auction.Provider{ID: id(len(m.sellers))}
		p.Capacity[x.kind], p.Ask[x.kind] = x.speed/giga*(period/1000), x.ask
		m.providers, m.sellers = append(m.providers, p), append(m.sellers, int32(i))
	}
	b, err := auction.NewBook(m.tasks, m.providers)
	if err != nil {
		return err
	}
	out, _, err := auction.Fallback(b, ageing)
	if err != nil {
		return err
	}
	return e.sell(b, out)
}

// As on a new chain: the fee of whoever leads what a clearing sells, in bps, and the operations that a moved byte counts as.
const (
	maxFee  = 1000
	balance = 4
)

// sell lets leases begin of what a clearing has sold.
func (e *economy) sell(b *auction.Book, out *auction.Outcome) error {
	m, h := &e.market, &e.tally
	var prices, units [3]float64
	var welfare float64
	for i := range out.Trades {
		t := &out.Trades[i]
		o := m.orders[t.Task]
		kind, total := o.kind, b.Tasks[t.Task].Demand[o.kind]
		rates, err := demand.Rates(t.Due[kind]/total, balance)
		if err != nil {
			return err
		}
		q, err := job.NewQuote(&o.Problem, &o.Conditions, rates, maxFee, e.rules.Tariff)
		if err != nil {
			return err
		}
		l := &lease{order: o, lead: int32(e.r.IntN(len(e.validators))), quote: q}
		left := q.Unit * uint64(o.Problem.Units())
		for n, f := range t.Fills {
			pay, err := money.ScaleDown(q.Unit*uint64(o.Problem.Units()), f.Units, total)
			if err != nil {
				return err
			}
			if n == len(t.Fills)-1 {
				pay = left // and what rounding leaves
			}
			left -= pay
			x := &e.providers[m.sellers[f.Provider]]
			l.parts = append(l.parts, part{provider: m.sellers[f.Provider], units: f.Units, pay: pay, took: f.Units * 1000 / max(x.speed/giga, 1), flops: f.Units * giga})
		}
		l.ends = e.now + period
		e.start(l)
		welfare += l.profit
		h.Auction[kind].add(o, q.Price)
		prices[kind] += float64(t.Price)
		units[kind] += float64(total)
		o.age = math.MaxUint32 // it has won
	}
	for k := range prices {
		if e.prices[k] = 0; units[k] > 0 {
			e.prices[k] = prices[k] / units[k]
		}
	}
	if h.Bound == 0 && len(out.Trades) > 0 { // once an hour
		e.compare(b, welfare)
	}
	e.waiting = slices.DeleteFunc(e.waiting, func(o *order) bool { return o.age == math.MaxUint32 })
	for _, o := range e.waiting {
		o.age++
	}
	return nil
}

// compare compares a clearing with the best that could be had if everybody said what work costs and is worth.
func (e *economy) compare(b *auction.Book, welfare float64) {
	m, h := &e.market, &e.tally
	truth := auction.Book{Tasks: slices.Clone(b.Tasks), Providers: slices.Clone(b.Providers)}
	for i := range truth.Tasks {
		truth.Tasks[i].Budget, truth.Tasks[i].Fee = m.orders[i].value, 0
	}
	for j := range truth.Providers {
		x := &e.providers[m.sellers[j]]
		truth.Providers[j].Ask[x.kind] = x.cost
	}
	bound, prices := Bound(&truth)
	h.Bound, h.Cleared = bound, welfare
	for k := range h.Competitive {
		h.Competitive[k] = prices[k]
	}
}
