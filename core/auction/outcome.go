package auction

import "math/bits"

// Fill is what one provider sells to one task.
type Fill struct {
	Units, Pay     uint64 // Pay is utally for all of them
	Task, Provider uint32
	Kind           uint8
}

// Trade is a task that wins.
type Trade struct {
	Task  uint32
	Cost  uint64 // what its providers ask
	Price uint64 // utally that it pays beside its fee
	Due   Vector // utally for all units of each kind, but for Literal and before Scale: no less than any seller asks for as many
	Fills []Fill // in the order of kinds, then of sale

	at     int     // its place by rank
	floor  uint64  // what it pays at least, if all who sell a kind get as much for a unit
	levels *levels // of Critical: what was sold before it
}

// Outcome is a clearing.
type Outcome struct {
	Trades  []Trade // by rank
	Welfare uint64  // utally: what winners would have paid, less fees and what their providers ask
	Surplus uint64  // utally that are paid and go to no provider
}

// Scale lets each trade of a single unit be of as many units as its task needs, each at the price of one. What all of them are worth
// to a task must be a budget.
func (o *Outcome) Scale(b *Book, units func(task uint32) uint64) {
	o.Welfare, o.Surplus = 0, 0
	for i := range o.Trades {
		t := &o.Trades[i]
		f, n := &t.Fills[0], units(t.Task)
		o.Welfare += n * (b.Tasks[t.Task].net() - t.Cost)
		o.Surplus += n * (t.Price - f.Pay)
		t.Cost, t.Price = n*t.Cost, n*t.Price
		f.Units, f.Pay = n, n*f.Pay
		t.Due[f.Kind] = f.Pay
	}
}

// fillBlock is for how many fills memory is taken at most at once, where one task does not want more.
const fillBlock = 1 << 14

// accept adds a task that has taken what lies between two levels.
func (c *checker) accept(i uint32, from, to *levels) {
	t := &c.rank.b.Tasks[i]
	most := 0
	for k := range from {
		if t.Demand[k] > 0 {
			most += to[k].at - from[k].at + 1
		}
	}
	if cap(c.fills)-len(c.fills) < most {
		c.fills = make([]Fill, 0, max(most, min(2*cap(c.fills), fillBlock), 16))
	}
	begin := len(c.fills)
	trade := Trade{Task: i, at: c.at}
	var dearest Vector
	for k, q := range t.Demand {
		for s, at := &c.stock[k], from[k]; q > 0; at.at++ {
			units := min(s.order[at.at].upto-at.units, q)
			if units == 0 {
				continue
			}
			j := s.sellers[at.at]
			ask := units * s.lots[j].ask
			c.fills = append(c.fills, Fill{Units: units, Pay: ask, Task: i, Provider: j, Kind: uint8(k)})
			trade.Cost += ask
			dearest[k] = max(dearest[k], s.lots[j].ask)
			at.units += units
			q -= units
		}
	}
	if c.rank.p.Rule != Literal { // which may take what it could not pay for at the dearest ask
		for k, q := range t.Demand {
			trade.Due[k] = q * dearest[k] // within its budget, since scores are no less than asks
			trade.floor += trade.Due[k]
		}
	}
	trade.Fills = c.fills[begin:len(c.fills):len(c.fills)]
	switch c.rank.p.Rule {
	case Midpoint:
		trade.share(t, trade.floor+(t.net()-trade.floor)/2)
	case Literal:
		trade.literal(t)
	case Critical:
		at := *from
		trade.levels = &at
	}
	c.out.Trades = append(c.out.Trades, trade)
	c.out.Welfare += t.net() - trade.Cost
}

// share raises what is due for each kind in proportion, from the floor to a total, and divides it by units. What division
// leaves the buyer keeps.
func (t *Trade) share(task *Task, total uint64) {
	for k, q := range task.Demand {
		if q > 0 {
			t.Due[k] += part(t.Due[k], t.floor, total-t.floor)
		}
	}
	for f := range t.Fills {
		fill := &t.Fills[f]
		fill.Pay = part(fill.Units, task.Demand[fill.Kind], t.Due[fill.Kind])
		t.Price += fill.Pay
	}
}

// literal prices as the seed does: halfway between what a unit is asked for and what the task bids for one, or else what
// is asked.
func (t *Trade) literal(task *Task) {
	var units uint64
	for _, q := range task.Demand {
		units += q
	}
	for f := range t.Fills {
		fill := &t.Fills[f]
		hi, lo := bits.Mul64(task.net(), fill.Units)
		bid, _ := bits.Div64(hi, lo, units)
		if fill.Pay < bid {
			fill.Pay += (bid - fill.Pay) / 2
		}
		t.Price += fill.Pay
	}
}
