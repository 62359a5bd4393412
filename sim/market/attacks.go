package market

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"

	"github.com/tally-network/tally/core/auction"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/sim"
)

// Profit is what an attack earns over being honest, in utally a game.
type Profit struct {
	Mean    float64 `json:"profit_utally"`
	Error   float64 `json:"error_utally"` // half of the interval in which the mean lies with odds of 95 %
	Verdict Verdict `json:"verdict"`
}

// Verdict says on which side of zero a profit lies.
type Verdict string

// The verdicts.
const (
	Loses     Verdict = "loses"
	Gains     Verdict = "gains"
	Undecided Verdict = "undecided"
	Zero      Verdict = "zero" // in every game
)

func newProfit(mean, half float64) Profit {
	p := Profit{mean, half, Undecided}
	switch {
	case mean == 0 && half == 0:
		p.Verdict = Zero
	case mean+half < 0:
		p.Verdict = Loses
	case mean-half > 0:
		p.Verdict = Gains
	}
	return p
}

// Attack is an attack of the catalogue, under the rules of a new chain.
type Attack struct {
	Name     string `json:"name"`
	Strategy string `json:"strategy"` // of several, the one that earned most in other games
	Games    int    `json:"games"`
	Profit
}

// attack is a game in which somebody has strategies to choose from.
type attack struct {
	name       string
	strategies []string
	play       func(strategy int, seed uint64) (sim.Game, error)
}

// Catalogue plays all attacks, so many games each. Of several strategies an attacker takes the one that has earned most in
// a third as many games before. Whatever comes of an attack, it has its row.
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
			p, err := measure(ctx, a, s, seed<<32, max(games/3, 5))
			if err != nil {
				return nil, err
			}
			if s == 0 || p.Mean > most {
				best, most = s, p.Mean
			}
		}
		p, err := measure(ctx, a, best, seed<<32+1<<31, games)
		if err != nil {
			return nil, err
		}
		out = append(out, Attack{a.name, a.strategies[best], games, p})
	}
	return out, nil
}

// measure plays games on all processors; what comes of them does not depend on how many there are.
func measure(ctx context.Context, a attack, strategy int, from uint64, games int) (Profit, error) {
	all, errs := make([]sim.Game, games), make([]error, games)
	workers := runtime.GOMAXPROCS(0)
	var playing sync.WaitGroup
	for w := range workers {
		playing.Go(func() {
			for i := w; i < games && errs[w] == nil; i += workers {
				if errs[w] = ctx.Err(); errs[w] == nil {
					all[i], errs[w] = a.play(strategy, from+uint64(i))
				}
			}
		})
	}
	playing.Wait()
	if err := errors.Join(errs...); err != nil {
		return Profit{}, fmt.Errorf("%s, by %s: %w", a.name, a.strategies[strategy], err)
	}
	return newProfit(interval(all)), nil
}

// interval is the weighted mean of games, and half of the interval in which it lies with odds of 95 %.
func interval(all []sim.Game) (mean, half float64) {
	var weight, squares float64
	for _, g := range all {
		weight += g.Weight
		mean += g.Weight * g.Gain
	}
	mean /= weight
	for _, g := range all {
		squares += math.Pow(g.Weight*(g.Gain-mean), 2)
	}
	n := float64(len(all))
	return mean, 1.96 * math.Sqrt(squares*n/(n-1)) / weight
}

// rules are those of a new chain. Its machines are quick, for orders of the games are short.
var rules = job.DefaultParams.Quick()

// leaseRounds is how many rounds of three units an order has in the attacks on leases.
const leaseRounds = 2

func attacks() (all []attack) {
	for _, d := range sim.Deviations() {
		all = append(all, onLease(d, rules, leaseRounds))
	}
	all = append(all,
		attack{"self-dealing for forced attempts", sim.SelfDeals[:], func(s int, seed uint64) (sim.Game, error) {
			return sim.SelfDeal(s).Play(rules, leaseRounds, seed)
		}},
		attack{"wash training", []string{"asking for all credit", "asking for none"}, func(s int, seed uint64) (sim.Game, error) {
			w, err := sim.WashTrain(rules, seed, s == 0)
			return sim.Game{Gain: -w.Cost, Weight: 1}, err
		}},
		attack{"false speed, while tiers are paid alike", []string{""}, falseSpeed},
		attack{"withheld clearing", []string{"posting nothing"}, inBooks(withheld)},
		attack{"clearing to one's liking", []string{"knowing all bids"}, inBooks(selfish)})
	for _, r := range auctionRules {
		all = append(all,
			attack{"shill bids, " + r.String(), shillNames(r), inBooks(func(s int, seed uint64) (float64, error) { return shill(r, s, seed, 0) })},
			attack{"shill bids, " + r.String(), []string{"knowing all bids"}, inBooks(func(_ int, seed uint64) (float64, error) { return bestShill(r, seed) })},
			misreports(r, buys), misreports(r, sells))
	}
	return all
}

// auctionRules are all by which prices may be set; a new chain has the first.
var auctionRules = []auction.Rule{auction.Midpoint, auction.Critical, auction.McAfee, auction.SBBA, auction.Exponential}

// onLease is a deviation from what the protocol asks of the people of a lease.
func onLease(d sim.Deviation, rules job.Params, rounds int) attack {
	return attack{d.String(), []string{""}, func(_ int, seed uint64) (sim.Game, error) { return d.Play(rules, rounds, seed) }}
}

// inBooks plays a game in many books, and returns the mean: most books show nothing.
func inBooks(play func(strategy int, seed uint64) (float64, error)) func(int, uint64) (sim.Game, error) {
	const books = 20
	return func(s int, seed uint64) (sim.Game, error) {
		g := sim.Game{Weight: 1}
		for i := range uint64(books) {
			x, err := play(s, seed*books+i)
			if err != nil {
				return g, err
			}
			g.Gain += x / books
		}
		return g, nil
	}
}
