package market

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/tally-network/tally/core/auction"
	"github.com/tally-network/tally/core/book"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/team"
	"github.com/tally-network/tally/sim"
)

// Split is what a seller gains by selling under several names.
type Split struct {
	At    string  `json:"at"` // a rule of clearings, or the book
	Names int     `json:"names"`
	Games int     `json:"games"`
	Gain  float64 `json:"gain"`  // of what it earns as one
	Error float64 `json:"error"` // half of the interval in which it lies with odds of 95 %

	Verdict Verdict `json:"verdict"`
}

// Splits plays sellers that come as several: under the rules of capacity that can be divided, and at the book, where an order that
// wants several providers takes names for machines.
func Splits(ctx context.Context, games int, seed uint64) (out []Split, err error) {
	markets := []struct {
		at   string
		play func(names int, seed uint64) (one, several float64, err error)
	}{
		{auction.Midpoint.String(), func(n int, seed uint64) (float64, float64, error) { return split(auction.Midpoint, n, seed) }},
		{auction.Critical.String(), func(n int, seed uint64) (float64, float64, error) { return split(auction.Critical, n, seed) }},
		{"the book", splitAtBook},
	}
	for _, m := range markets {
		for _, names := range []int{2, 8} {
			var gains []sim.Game
			var base float64
			for i := range games {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				one, several, err := m.play(names, seed<<32+uint64(i))
				if err != nil {
					return nil, err
				}
				base += one / float64(games)
				gains = append(gains, sim.Game{Gain: several - one, Weight: 1})
			}
			p := newProfit(interval(gains))
			out = append(out, Split{m.at, names, games, p.Mean / max(base, 1), p.Error / max(base, 1), p.Verdict})
		}
	}
	return out, nil
}

func split(rule auction.Rule, names int, seed uint64) (one, several float64, err error) {
	b := smallBook(rand.New(rand.NewPCG(seed, 6)), 1)
	out, _, err := auction.Clear(b, auction.Params{Rule: rule}, auction.Standard)
	if err != nil {
		return 0, 0, err
	}
	one = earns(out, b, 0)
	providers := slices.Clone(b.Providers)
	whole := providers[0].Capacity[0]
	providers[0].Capacity[0] = whole - whole/uint64(names)*uint64(names-1)
	for n := 1; n < names; n++ {
		p := providers[0]
		p.ID = id(1<<10 + n)
		p.Capacity[0] = whole / uint64(names)
		providers = append(providers, p)
	}
	as, err := auction.NewBook(slices.Clone(b.Tasks), providers)
	if err != nil {
		return 0, 0, err
	}
	if out, _, err = auction.Clear(as, auction.Params{Rule: rule}, auction.Standard); err != nil {
		return 0, 0, err
	}
	for j := range as.Providers {
		if j == 0 || j >= len(b.Providers) {
			several += earns(out, as, uint32(j))
		}
	}
	return one, several, nil
}

// splitAtBook is what a provider has of orders that each meet one of six offers, in the mean: as one name, and as several of
// one machine.
func splitAtBook(names int, seed uint64) (one, several float64, err error) {
	const orders = 50
	r := rand.New(rand.NewPCG(seed, 9))
	for i := range uint64(orders) {
		o := newOrder(i, 1e5, worth, true, r)
		teams := make([][]uint64, 6) // by validator: what its providers ask
		for i := range teams {
			for range 1 + r.IntN(4) {
				teams[i] = append(teams[i], 700+r.Uint64N(800))
			}
		}
		for _, n := range []int{1, names} {
			won, err := winsAs(o, teams, n)
			if err != nil {
				return 0, 0, err
			}
			if n == 1 {
				one += won / orders
			} else {
				several += won / orders
			}
		}
	}
	return one, several, nil
}

// margin is the percentage of what the provider asks that is not cost.
const margin = 20

// winsAs is what the first provider of the first team has of an order, under so many names.
func winsAs(o *order, teams [][]uint64, names int) (float64, error) {
	var offers []book.Offer
	var asks []uint64
	own := teams[0][0]
	members := 0 // of the first team
	for i, t := range teams {
		asks = append(asks[:0], t...)
		if i == 0 {
			asks = append(asks, slices.Repeat([]uint64{own}, names-1)...)
		}
		slices.Sort(asks)
		asks = asks[:min(len(asks), o.Conditions.Needs.Most)]
		terms := team.Terms{Order: &o.Order, FeeBps: 500, Rules: &unforced}
		n, p, err := terms.Afford(len(asks), func(n int) job.Rates { return job.Rates{GFLOP: asks[n-1]} }, o.Conditions.MaxPrice)
		if err != nil {
			return 0, err
		}
		offers = append(offers, book.Offer{Validator: string(rune('a' + i)), Price: p.Price, Providers: n, Referees: len(teams) - 1})
		if i == 0 {
			for _, ask := range asks[:n] {
				if ask == own {
					members++
				}
			}
		}
	}
	best, ok := book.Best(o.Conditions.Bid(), offers)
	if !ok || best.Validator != "a" {
		return 0, nil
	}
	share := float64(members) / float64(best.Providers) // all names of a team have as many units
	return share * float64(o.gflop()*own) * margin / 100, nil
}

// Share is what small clearings have of the greatest welfare.
type Share struct {
	Method    string  `json:"method"`
	Books     int     `json:"books"`
	OfOptimum float64 `json:"of_optimum"` // mean
	Worst     float64 `json:"worst"`
	OfBound   float64 `json:"of_bound"` // mean, of that of the linear program
}

// Shares compares clearings of small books with the optimum, which trying all sets of winners finds, and with Bound.
func Shares(ctx context.Context, books int, seed uint64) ([]Share, error) {
	methods := []Share{{Method: "posted"}, {Method: "fallback"}}
	for i := range books {
		b := smallBook(rand.New(rand.NewPCG(seed<<32+uint64(i), 7)), 3)
		best, err := auction.Optimum(b)
		if err != nil || best == 0 {
			continue
		}
		bound, _ := Bound(b)
		for m := range methods {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			out, _, err := auction.Fallback(b, auction.Params{})
			if m == 0 {
				out, _, err = auction.Search(b, auction.Params{}, 100)
			}
			if err != nil {
				return nil, err
			}
			s, share := &methods[m], float64(out.Welfare)/float64(best)
			if s.Books++; s.Books == 1 {
				s.Worst = share
			}
			s.OfOptimum, s.OfBound, s.Worst = s.OfOptimum+share, s.OfBound+float64(out.Welfare)/bound, min(s.Worst, share)
		}
	}
	for m := range methods {
		s := &methods[m]
		s.OfOptimum, s.OfBound = s.OfOptimum/float64(max(s.Books, 1)), s.OfBound/float64(max(s.Books, 1))
	}
	return methods, nil
}
