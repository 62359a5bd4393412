package auction

import (
	"sort"

	"github.com/tally-network/tally/core/beacon"
)

// single clears a book of single units, each kind by itself.
func (c *checker) single() {
	for kind, n := range c.rank.b.sellers {
		if n == 0 {
			continue
		}
		s := singles{c: c, kind: kind, sellers: c.cert.Sellers[kind]}
		for _, i := range c.cert.Tasks {
			if c.rank.b.Tasks[i].Demand[kind] > 0 {
				s.buyers = append(s.buyers, i)
			}
		}
		if c.rank.p.Rule == Exponential {
			s.exponential()
		} else {
			s.reduce()
		}
	}
}

// singles is a book of single units of a kind: buyers by what they bid, the greatest first, and sellers by what they ask,
// the least first.
type singles struct {
	c       *checker
	kind    int
	buyers  []uint32
	sellers []uint32
}

func (s *singles) bid(i int) uint64 { return s.c.rank.b.Tasks[s.buyers[i]].net() }
func (s *singles) ask(i int) uint64 { return s.c.rank.b.Providers[s.sellers[i]].Ask[s.kind] }

// draw returns the lots for something that is chance among those who trade this kind.
func (s *singles) draw(what string) beacon.Lots {
	return beacon.Draw(s.c.rank.p.Seed, beacon.Clearing, append([]byte(what), byte(s.kind)))
}

// trade lets one buyer pay a price and one seller get one.
func (s *singles) trade(buyer, seller int, price, pay uint64) {
	c := s.c
	fill := Fill{Units: 1, Pay: pay, Task: s.buyers[buyer], Provider: s.sellers[seller], Kind: uint8(s.kind)}
	c.out.Trades = append(c.out.Trades, Trade{Task: fill.Task, Cost: s.ask(seller), Price: price, Fills: []Fill{fill}})
	c.out.Welfare += s.bid(buyer) - s.ask(seller)
	c.out.Surplus += price - pay
}

// reduce clears by McAfee or SBBA.
func (s *singles) reduce() {
	most := min(len(s.buyers), len(s.sellers))
	k := sort.Search(most, func(i int) bool { return s.bid(i) < s.ask(i) })
	if k == 0 {
		return
	}
	bid, ask := s.bid(k-1), s.ask(k-1) // of the last pair that could trade
	if s.c.rank.p.Rule == SBBA {
		if k < len(s.sellers) && s.ask(k) <= bid {
			s.pair(k, k, s.ask(k), s.ask(k))
			return
		}
		s.pair(k-1, int(s.draw("sbba").Below(0, uint64(k))), bid, bid)
		return
	}
	if k < most {
		if price := (s.bid(k) + s.ask(k)) / 2; ask <= price && price <= bid {
			s.pair(k, k, price, price)
			return
		}
	}
	s.pair(k-1, k-1, bid, ask)
}

// pair lets the first n buyers trade with the first n sellers, of whom one is left out. Who meets whom is drawn: whose task a
// seller gets must not depend on what it asks.
func (s *singles) pair(n, out int, price, pay uint64) {
	for buyer, seller := range s.draw("pairs").Pick(n, n) {
		if seller >= out {
			seller++
		}
		s.trade(buyer, seller, price, pay)
	}
}

// exponential draws a price: one with t trades has odds of exp(ε·t/2). One bid changes each t by one at most, and so the odds
// by a factor of exp(ε) at most. Who trades among those who would is drawn, too.
func (s *singles) exponential() {
	p := s.c.rank.p
	buying, selling := make([]int, p.Grid.Count), make([]int, p.Grid.Count)
	most := 0
	for g := range buying {
		price := p.Grid.Least + uint64(g)*p.Grid.Step
		buying[g] = sort.Search(len(s.buyers), func(i int) bool { return s.bid(i) < price })
		selling[g] = sort.Search(len(s.sellers), func(i int) bool { return s.ask(i) > price })
		most = max(most, min(buying[g], selling[g]))
	}
	odds := make([]uint64, p.Grid.Count)
	for g := range odds {
		odds[g] = expNeg(uint64(p.Epsilon) * uint64(most-min(buying[g], selling[g])))
	}
	at, err := s.draw("price").Weighted(odds, 1)
	if err != nil || len(at) == 0 {
		return // not reached: the best price has odds above 0, and 1,024 of 2⁵² fit
	}
	g := at[0]
	n := min(buying[g], selling[g])
	buyers, sellers := s.draw("buyers").Pick(buying[g], n), s.draw("sellers").Pick(selling[g], n)
	price := p.Grid.Least + uint64(g)*p.Grid.Step
	for i := range n {
		s.trade(buyers[i], sellers[i], price, price)
	}
}
