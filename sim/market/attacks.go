package market

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tally-network/tally/core/auction"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/match"
	"github.com/tally-network/tally/core/money"
	"github.com/tally-network/tally/sim"
)

// Attack is what an attack of the catalogue earned.
type Attack struct {
	Name     string  `json:"name"`
	Strategy string  `json:"strategy"` // of several, the one that earned most in other games
	Games    int     `json:"games"`
	Profit   float64 `json:"profit_utally"` // over being honest, mean
	Error    float64 `json:"error_utally"`  // half of the interval in which the mean lies with odds of 95 %
}

// Check returns an error unless an attack loses for certain.
func (a *Attack) Check() error {
	if a.Profit+a.Error >= 0 {
		return fmt.Errorf("%s, by %s: %.0f ± %.0f utally a game: it must lose", a.Name, a.Strategy, a.Profit, a.Error)
	}
	return nil
}

// attack is a game in which somebody has strategies to choose from.
type attack struct {
	name       string
	strategies []string
	play       func(strategy int, seed uint64) (profit float64, err error)
}

// Catalogue plays all attacks, so many games each. Of several strategies an attacker takes the one that has earned most in
// a third as many games before.
func Catalogue(ctx context.Context, games int, seed uint64, told func(string)) (out []Attack, err error) {
	for _, a := range attacks() {
		if told != nil {
			told("plays " + a.name)
		}
		best := 0
		var most float64
		for s := range a.strategies {
			if len(a.strategies) == 1 {
				break
			}
			mean, _, err := measure(ctx, a, s, seed<<32, max(games/3, 5))
			if err != nil {
				return nil, err
			}
			if s == 0 || mean > most {
				best, most = s, mean
			}
		}
		mean, deviation, err := measure(ctx, a, best, seed<<32+1<<31, games)
		if err != nil {
			return nil, err
		}
		out = append(out, Attack{a.name, a.strategies[best], games, mean, deviation})
	}
	return out, nil
}

func measure(ctx context.Context, a attack, strategy int, from uint64, games int) (mean, deviation float64, err error) {
	all := make([]float64, games)
	for i := range all {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		if all[i], err = a.play(strategy, from+uint64(i)); err != nil {
			return 0, 0, fmt.Errorf("%s, by %s: %w", a.name, a.strategies[strategy], err)
		}
	}
	mean, deviation = interval(all)
	return mean, deviation, nil
}

// interval is the mean of numbers, and half of the interval in which it lies with odds of 95 %.
func interval(all []float64) (mean, half float64) {
	n := float64(len(all))
	for _, x := range all {
		mean += x / n
	}
	var squares float64
	for _, x := range all {
		squares += (x - mean) * (x - mean)
	}
	return mean, 1.96 * math.Sqrt(squares/(n-1)/n)
}

func attacks() (all []attack) {
	for _, d := range sim.Deviations {
		all = append(all, attack{d.Name, []string{"whoever can"}, func(_ int, seed uint64) (float64, error) { return d.Gain(seed) }})
	}
	all = append(all,
		attack{"wash training", []string{"asking for all credit", "asking for none"}, func(s int, seed uint64) (float64, error) {
			w, err := sim.WashTrain(seed, s == 0)
			return -w.Cost, err
		}},
		attack{"false speed", falseSpeeds, falseSpeed},
		attack{"withheld clearing", []string{"posting nothing"}, inBooks(withheld)})
	for _, r := range []auction.Rule{auction.Midpoint, auction.Critical, auction.McAfee, auction.SBBA, auction.Exponential} {
		all = append(all, attack{"shill bids, " + r.String(), shillNames(), inBooks(func(s int, seed uint64) (float64, error) { return shill(r, s, seed) })})
	}
	return all
}

// inBooks plays a game in many books, and returns the mean: most books show nothing.
func inBooks(play func(strategy int, seed uint64) (float64, error)) func(int, uint64) (float64, error) {
	const books = 50
	return func(s int, seed uint64) (sum float64, err error) {
		for i := range uint64(books) {
			x, err := play(s, seed*books+i)
			if err != nil {
				return 0, err
			}
			sum += x / books
		}
		return sum, nil
	}
}

// A provider that is slow buys the measure of a fast one: it gives itself orders for which it has the results already,
// so that only what credit burns is paid. Then it works for half an hour as one of tier A, at what these are paid more.
var (
	premiums    = []uint64{1, 2, 3} // percent that tier A is paid more than others
	falseSpeeds = []string{"1 % more for tier A", "2 % more", "3 % more"}
)

// What such a provider is paid for 10⁹ FLOP, and for how many seconds it works.
const (
	falsePaid = 1000
	falseWork = 1800
)

func falseSpeed(s int, seed uint64) (float64, error) {
	speed := 2e11 + rand.New(rand.NewPCG(seed, 3)).Uint64N(48e11)
	burnt, err := falsify(speed)
	return float64(speed)/giga*falseWork*falsePaid*float64(premiums[s])/100 - burnt, err
}

// FalseSpeedPays is how much more tier A must be paid than others, as a part of the price, so that the fastest machine of the
// slowest tier does not lose by such a measure.
func FalseSpeedPays() (float64, error) {
	speed := Tiers[1].Speed - giga
	burnt, err := falsify(speed)
	return burnt / (float64(speed) / giga * falseWork * falsePaid), err
}

// falsify returns what must be burnt, in utally, so that a machine is measured as one of tier A all the while: each minute
// of work shows its speed again.
func falsify(speed uint64) (burnt float64, err error) {
	var pace match.Pace
	pace.AddWork(speed * 600)
	pace.AddTime(600_000)
	for at := 0; at < falseWork; at += 60 {
		if lacks := Tiers[0].Speed - min(pace.Rate(), Tiers[0].Speed); lacks > 0 {
			flops := lacks / 1000 * max(pace.Time, 600_000)
			pace.AddWork(flops)
			burn, err := money.Scale(job.DefaultParams.BurnUT, flops, job.UT)
			if err != nil {
				return 0, err
			}
			burnt += float64(burn)
		}
		pace.AddWork(speed * 60)
		pace.AddTime(60_000)
	}
	return burnt, nil
}

// withheld is what a trader has of keeping a better clearing back, so that the fallback holds. Nobody else posts, which is the
// best case for it.
func withheld(_ int, seed uint64) (float64, error) {
	b := smallBook(rand.New(rand.NewPCG(seed, 4)), 3)
	fallback, _, err := auction.Fallback(b, auction.Params{})
	if err != nil {
		return 0, err
	}
	best, _, err := auction.Search(b, auction.Params{}, 60)
	if err != nil {
		return 0, err
	}
	var sum float64 // of all traders: whoever it is, chance decides
	for i := range b.Tasks {
		sum += gainOf(fallback, b, uint32(i)) - gainOf(best, b, uint32(i))
	}
	for j := range b.Providers {
		sum += earns(fallback, b, uint32(j)) - earns(best, b, uint32(j))
	}
	return sum / float64(len(b.Tasks)+len(b.Providers)), nil
}

// gainOf is what a task has of a clearing, if it has bid what it is worth.
func gainOf(o *auction.Outcome, b *auction.Book, task uint32) float64 {
	for i := range o.Trades {
		if t := &o.Trades[i]; t.Task == task {
			x := &b.Tasks[task]
			return float64(x.Budget-x.Fee) - float64(t.Price)
		}
	}
	return 0
}

// earns is what a provider has of a clearing, if it asks what work costs it.
func earns(o *auction.Outcome, b *auction.Book, provider uint32) (sum float64) {
	for i := range o.Trades {
		for _, f := range o.Trades[i].Fills {
			if f.Provider == provider {
				sum += float64(f.Pay) - float64(f.Units*b.Providers[provider].Ask[f.Kind])
			}
		}
	}
	return sum
}

// A shill is a buyer that a seller sends, so that others pay more. It wants so many units, at percents of what a unit
// costs at most: of the cheaper ones nobody takes notice.
var (
	shillParts  = []uint64{1, 4, 8}
	shillPrices = []uint64{110, 150, 220}
)

func shillNames() (out []string) {
	for _, n := range shillParts {
		for _, p := range shillPrices {
			out = append(out, fmt.Sprintf("%d units at %d %%", n, p))
		}
	}
	return out
}

// outlay is what the network keeps of what a shill pays: burn and tax.
func outlay(paid uint64) float64 {
	return float64(paid) * float64(job.DefaultParams.BurnBps+job.DefaultParams.TaxBps) / 10_000
}

// shill returns what a seller gains by a shill under a rule.
func shill(rule auction.Rule, strategy int, seed uint64) (float64, error) {
	r := rand.New(rand.NewPCG(seed, 5))
	units, percent := shillParts[strategy/len(shillPrices)], shillPrices[strategy%len(shillPrices)]
	p := auction.Params{Rule: rule}
	p.Seed = id(int(seed))
	single := rule != auction.Midpoint && rule != auction.Critical
	b := smallBook(r, 1)
	if single {
		units = 1
		b = singles(r)
		p.Epsilon, p.Grid = 1000, auction.Grid{Least: 100, Step: 50, Count: 40}
	}
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

// singles is a book of single units.
func singles(r *rand.Rand) *auction.Book {
	var tasks []auction.Task
	var providers []auction.Provider
	for i := range 20 {
		tasks = append(tasks, auction.Task{ID: id(i), Demand: auction.Vector{1}, Budget: 500 + r.Uint64N(2000)})
		providers = append(providers, auction.Provider{ID: id(i), Capacity: auction.Vector{1}, Ask: auction.Vector{500 + r.Uint64N(1000)}})
	}
	return mustBook(tasks, providers)
}

// mustBook makes a book of bids that are within all limits.
func mustBook(tasks []auction.Task, providers []auction.Provider) *auction.Book {
	b, err := auction.NewBook(tasks, providers)
	if err != nil {
		panic(err)
	}
	return b
}

// smallBook is one whose optimum can be found by trying everything.
func smallBook(r *rand.Rand, kinds int) *auction.Book {
	var tasks []auction.Task
	var providers []auction.Provider
	for i := range 10 {
		t := auction.Task{ID: id(i)}
		units := uint64(0)
		for k := range kinds {
			t.Demand[k] = r.Uint64N(8)
			units += t.Demand[k]
		}
		if units == 0 {
			t.Demand[0], units = 1, 1
		}
		t.Budget = units * (500 + r.Uint64N(2000))
		t.Fee = t.Budget / 20
		tasks = append(tasks, t)
	}
	for j := range 5 {
		p := auction.Provider{ID: id(j)}
		for k := range kinds {
			p.Capacity[k], p.Ask[k] = r.Uint64N(12), 500+r.Uint64N(1000)
		}
		providers = append(providers, p)
	}
	return mustBook(tasks, providers)
}

// Split is what a seller gains by selling under several names.
type Split struct {
	Rule  string  `json:"rule"`
	Names int     `json:"names"`
	Games int     `json:"games"`
	Gain  float64 `json:"gain"`  // of what it earns as one
	Error float64 `json:"error"` // half of the interval in which it lies with odds of 95 %
}

// Splits plays sellers that come as several, under the rules of capacity that can be divided.
func Splits(ctx context.Context, games int, seed uint64) (out []Split, err error) {
	for _, rule := range []auction.Rule{auction.Midpoint, auction.Critical} {
		for _, names := range []int{2, 8} {
			var gains []float64
			var base float64
			for i := range games {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				one, several, err := split(rule, names, seed<<32+uint64(i))
				if err != nil {
					return nil, err
				}
				base += one / float64(games)
				gains = append(gains, several-one)
			}
			mean, half := interval(gains)
			out = append(out, Split{rule.String(), names, games, mean / max(base, 1), half / max(base, 1)})
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
