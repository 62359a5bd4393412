package auction

import (
	"sort"

	"github.com/tally-network/tally/core/beacon"
)

// single clears a book of single units of one kind.
func (c *Checker) single() {
	var kind int
	for k, n := range c.rank.b.sellers {
		if n > 0 {
			kind = k
		}
	}
	s := singles{c, kind, c.cert.Tasks, c.cert.Sellers[kind]}
	if c.rank.p.Rule == Exponential {
		s.exponential()
		return
	}
	s.reduce()
}

// singles is a book of single units: buyers by what they bid, the greatest first, and sellers by what they ask, the least
// first.
type singles struct {
	c       *Checker
	kind    int
	buyers  []uint32
	sellers []uint32
}

func (s *singles) bid(i int) uint64 { return s.c.rank.b.Tasks[s.buyers[i]].net() }
func (s *singles) ask(i int) uint64 { return s.c.rank.b.Providers[s.sellers[i]].Ask[s.kind] }

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
			s.same(k, -1, s.ask(k))
			return
		}
		out := beacon.Draw(s.c.rank.p.Seed, beacon.Clearing, []byte("sbba")).Below(0, uint64(k))
		s.same(k-1, int(out), bid)
		return
	}
	if k < most {
		if price := (s.bid(k) + s.ask(k)) / 2; ask <= price && price <= bid {
			s.same(k, -1, price)
			return
		}
	}
	for i := range k - 1 {
		s.trade(i, i, bid, ask)
	}
}

// same lets the first n buyers trade at one price, with the first sellers except one.
func (s *singles) same(n, except int, price uint64) {
	seller := 0
	for i := range n {
		if seller == except {
			seller++
		}
		s.trade(i, seller, price, price)
		seller++
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
	draw := func(what string) beacon.Lots { return beacon.Draw(p.Seed, beacon.Clearing, []byte(what)) }
	at, err := draw("price").Weighted(odds, 1)
	if err != nil || len(at) == 0 {
		return // not reached: the best price has odds above 0, and 1,024 of 2⁵² fit
	}
	g := at[0]
	n := min(buying[g], selling[g])
	buyers, sellers := draw("buyers").Pick(buying[g], n), draw("sellers").Pick(selling[g], n)
	price := p.Grid.Least + uint64(g)*p.Grid.Step
	for i := range n {
		s.trade(buyers[i], sellers[i], price, price)
	}
}
