package market

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tally-network/tally/core/auction"
	"github.com/tally-network/tally/core/job"
)

// Attacks on clearings of small books. All bids are public until the block that clears them, so whoever bids last may know
// the others'; an attacker that does bids only where that gains.

// withheld is what a trader has of keeping a better clearing back, so that the fallback holds. Nobody else posts, which is the
// best case for it.
func withheld(_ int, seed uint64) (float64, error) {
	b, fallback, best, err := clearings(seed)
	if err != nil {
		return 0, err
	}
	var sum float64 // of all traders: whoever it is, chance decides
	all := traders(b)
	for _, t := range all {
		sum += t.has(fallback, b) - t.has(best, b)
	}
	return sum / float64(len(all)), nil
}

// selfish is what a trader has that posts, of all clearings better than the fallback, the one that suits it best, or none. Else
// the best is posted. Nobody else posts.
func selfish(_ int, seed uint64) (float64, error) {
	b, fallback, best, err := clearings(seed)
	if err != nil {
		return 0, err
	}
	all := []*auction.Outcome{fallback}
	for s := auction.Shape(0); s <= auction.ByBid; s++ {
		for k := range 3 {
			for _, halves := range []uint16{1, 2, 8, 16} {
				m := auction.Measure{Shape: s, Weight: auction.Standard.Weight}
				m.Weight[k] = max(1, m.Weight[k]/4*halves)
				o, _, err := auction.Clear(b, auction.Params{}, m)
				if err != nil {
					return 0, err
				}
				if o.Welfare > fallback.Welfare {
					all = append(all, o)
				}
			}
		}
	}
	var sum float64
	those := traders(b)
	for _, t := range those {
		var most float64
		for _, o := range all {
			most = max(most, t.has(o, b)-t.has(best, b))
		}
		sum += most
	}
	return sum / float64(len(those)), nil
}

// clearings returns a book, its fallback and the best clearing that is found.
func clearings(seed uint64) (b *auction.Book, fallback, best *auction.Outcome, err error) {
	b = smallBook(rand.New(rand.NewPCG(seed, 4)), 3)
	if fallback, _, err = auction.Fallback(b, auction.Params{}); err != nil {
		return nil, nil, nil, err
	}
	best, _, err = auction.Search(b, auction.Params{}, 60)
	return b, fallback, best, err
}

// side is on which side of a market somebody trades.
type side bool

const (
	buys  side = false
	sells side = true
)

// trader is somebody of a book.
type trader struct {
	side side
	at   uint32 // its place among tasks or providers
}

func traders(b *auction.Book) (all []trader) {
	for i := range b.Tasks {
		all = append(all, trader{buys, uint32(i)})
	}
	for j := range b.Providers {
		all = append(all, trader{sells, uint32(j)})
	}
	return all
}

// has is what a trader has of a clearing, if the book says what work costs and is worth.
func (t trader) has(o *auction.Outcome, truth *auction.Book) float64 {
	if t.side == buys {
		return gainOf(o, truth, t.at)
	}
	return earns(o, truth, t.at)
}

// What people say of what a unit is worth to them, or costs them, in percent of it. A buyer says less, a seller more.
var said = map[side][]uint64{
	buys:  {95, 90, 85, 80, 70, 60, 50},
	sells: {105, 110, 120, 130, 150, 175, 200},
}

// misreports is an attack of a buyer or a seller that does not say what a unit is worth to it, or costs it.
func misreports(rule auction.Rule, s side) attack {
	name := "understated worth, "
	if s == sells {
		name = "overstated cost, "
	}
	a := attack{name: name + rule.String()}
	for _, percent := range said[s] {
		a.strategies = append(a.strategies, fmt.Sprintf("%d %%", percent))
	}
	a.play = inBooks(func(strategy int, seed uint64) (float64, error) { return misreport(rule, s, said[s][strategy], seed) })
	return a
}

func misreport(rule auction.Rule, s side, percent, seed uint64) (float64, error) {
	r := rand.New(rand.NewPCG(seed, 8))
	b, p := bookFor(rule, r)
	lies := auction.Book{Tasks: slices.Clone(b.Tasks), Providers: slices.Clone(b.Providers)}
	t := trader{side: s}
	if s == buys {
		t.at = uint32(r.IntN(len(b.Tasks)))
		x := &lies.Tasks[t.at]
		x.Budget = x.Fee + (x.Budget-x.Fee)*percent/100
	} else {
		t.at = uint32(r.IntN(len(b.Providers)))
		x := &lies.Providers[t.at]
		x.Ask[0] = x.Ask[0] * percent / 100
	}
	with, err := auction.NewBook(lies.Tasks, lies.Providers)
	if err != nil {
		return 0, err
	}
	honest, _, err := auction.Clear(b, p, auction.Standard)
	if err != nil {
		return 0, err
	}
	out, _, err := auction.Clear(with, p, auction.Standard)
	if err != nil {
		return 0, err
	}
	return t.has(out, b) - t.has(honest, b), nil
}

// A shill is a buyer that a seller sends, so that others pay more. It wants so many units, at percents of what a unit
// costs at most.
var (
	shillParts  = []uint64{1, 4, 8}
	shillPrices = []uint64{80, 90, 100, 110, 130, 150, 180, 220}
)

// shillNames are the strategies of shills: rules of single units know one part.
func shillNames(rule auction.Rule) (out []string) {
	for _, n := range shillParts[:partsOf(rule)] {
		for _, p := range shillPrices {
			out = append(out, fmt.Sprintf("%d × %d %%", n, p))
		}
	}
	return out
}

func partsOf(rule auction.Rule) int {
	if single(rule) {
		return 1
	}
	return len(shillParts)
}

// single reports whether a rule is of single units.
func single(rule auction.Rule) bool { return rule != auction.Midpoint && rule != auction.Critical }

// bookFor draws a book that a rule clears.
func bookFor(rule auction.Rule, r *rand.Rand) (*auction.Book, auction.Params) {
	p := auction.Params{Rule: rule, Seed: id(r.IntN(1 << 30))}
	if single(rule) {
		p.Epsilon, p.Grid = 1000, auction.Grid{Least: 100, Step: 50, Count: 40}
		return singles(r), p
	}
	return smallBook(r, 1), p
}

// outlay is what the network keeps of what a shill pays: burn and tax.
func outlay(paid uint64) float64 {
	return float64(paid) * float64(job.DefaultParams.BurnBps+job.DefaultParams.TaxBps) / 10_000
}

// bestShill is what a seller has that knows all bids, and sends the shill that gains most, or none. What decides by chance is
// drawn after the last bid, so it knows means alone.
func bestShill(rule auction.Rule, seed uint64) (float64, error) {
	draws := uint64(1)
	if rule == auction.SBBA || rule == auction.Exponential {
		draws = 8
	}
	best, most := -1, 0.0
	for s := range shillNames(rule) {
		var mean float64
		for d := range draws {
			gain, err := shill(rule, s, seed, d)
			if err != nil {
				return 0, err
			}
			mean += gain / float64(draws)
		}
		if mean > most {
			best, most = s, mean
		}
	}
	if best < 0 || draws == 1 {
		return most, nil
	}
	return shill(rule, best, seed, draws)
}

// shill returns what a seller gains by a shill under a rule, in one draw of what chance decides.
func shill(rule auction.Rule, strategy int, seed, draw uint64) (float64, error) {
	r := rand.New(rand.NewPCG(seed, 5))
	units, percent := shillParts[strategy/len(shillPrices)], shillPrices[strategy%len(shillPrices)]
	b, p := bookFor(rule, r)
	p.Seed = id(int(seed<<4 | draw))
	who := uint32(r.IntN(len(b.Providers)))
	honest, _, err := auction.Clear(b, p, auction.Standard)
	if err != nil {
		return 0, err
	}
	t := auction.Task{ID: id(1 << 20), Budget: units * 10 * percent}
	t.Demand[0] = units
	with, err := auction.NewBook(append(slices.Clone(b.Tasks), t), slices.Clone(b.Providers))
	if err != nil {
		return 0, err
	}
	out, _, err := auction.Clear(with, p, auction.Standard)
	if err != nil {
		return 0, err
	}
	gain := earns(out, with, who) - earns(honest, b, who)
	for i := range out.Trades {
		if x := &out.Trades[i]; int(x.Task) == len(b.Tasks) {
			gain -= float64(x.Price) + outlay(x.Price)
			for _, f := range x.Fills {
				if f.Provider == who { // its own unit is not worked on
					gain += float64(f.Units * with.Providers[who].Ask[0])
				}
			}
		}
	}
	return gain, nil
}
