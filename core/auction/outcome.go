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
	Task   uint32
	Cost   uint64 // what its providers ask
	Price  uint64 // utally that it pays beside its fee
	Fills  []Fill // in the order of kinds, then of sale
	levels *levels
	at     int // its place by rank
}

// Outcome is a clearing.
type Outcome struct {
	Trades  []Trade // by rank
	Welfare uint64  // utally: what winners would have paid, less fees and what their providers ask
	Surplus uint64  // utally that are paid and go to no provider
}

// fillBlock is for how many fills memory is taken at most at once, where one task does not want more.
const fillBlock = 1 << 14

// accept adds a task that has taken what lies between two levels. It returns how many sell to it.
func (c *Checker) accept(i uint32, from, to *levels) int {
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
			at.units += units
			q -= units
		}
	}
	trade.Fills = c.fills[begin:len(c.fills):len(c.fills)]
	switch c.rank.p.Rule {
	case Midpoint:
		trade.share(trade.Cost + (t.net()-trade.Cost)/2)
	case Literal:
		trade.literal(t)
	case Critical:
		at := *from
		trade.levels = &at
	}
	c.out.Trades = append(c.out.Trades, trade)
	c.out.Welfare += t.net() - trade.Cost
	return len(trade.Fills)
}

// share divides a total, which is at least the cost, among those who sell: each gets what it asks, and of the rest a part
// in proportion to that. What division leaves the buyer keeps.
func (t *Trade) share(total uint64) {
	for f := range t.Fills {
		ask := t.Fills[f].Pay
		hi, lo := bits.Mul64(total-t.Cost, ask)
		more, _ := bits.Div64(hi, lo, t.Cost) // ask ≤ cost, so that it is below total
		t.Fills[f].Pay = ask + more
		t.Price += ask + more
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
