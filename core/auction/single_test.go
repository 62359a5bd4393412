package auction

import (
	"fmt"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func singlesOf(t *testing.T, bids, asks []uint64) *Book {
	var tasks []Task
	for i, x := range bids {
		tasks = append(tasks, Task{ID: id(i), Demand: Vector{1}, Budget: x})
	}
	var providers []Provider
	for j, x := range asks {
		providers = append(providers, Provider{ID: id(j), Capacity: Vector{1}, Ask: Vector{x}})
	}
	return book(t, tasks, providers)
}

func TestSingleUnits(t *testing.T) {
	for _, c := range []struct {
		why        string
		rule       Rule
		bids, asks []uint64
		trades     int
		price, pay uint64
	}{
		{"the next pair's mean suits all", McAfee, []uint64{9, 8, 4}, []uint64{1, 2, 6}, 2, 5, 5},
		{"it does not, so that the last pair gives way", McAfee, []uint64{9, 8, 7, 1}, []uint64{1, 2, 3, 20}, 2, 7, 3},
		{"there is no next pair", McAfee, []uint64{9, 8}, []uint64{1, 2}, 1, 8, 2},
		{"one pair gives way to nobody", McAfee, []uint64{9}, []uint64{1}, 0, 0, 0},
		{"the next seller's ask", SBBA, []uint64{9, 8, 4}, []uint64{1, 2, 6}, 2, 6, 6},
		{"no ask is at most the last bid", SBBA, []uint64{9, 8, 4}, []uint64{1, 2, 20}, 1, 8, 8},
		{"nobody wants to", SBBA, []uint64{1}, []uint64{2}, 0, 0, 0},
		{"nobody is there", McAfee, nil, []uint64{2}, 0, 0, 0},
	} {
		out, _, err := Clear(singlesOf(t, c.bids, c.asks), Params{Rule: c.rule}, Standard)
		if err != nil || len(out.Trades) != c.trades {
			t.Errorf("%s: %+v, %v", c.why, out, err)
			continue
		}
		for _, trade := range out.Trades {
			if trade.Price != c.price || trade.Fills[0].Pay != c.pay {
				t.Errorf("%s: %+v", c.why, trade)
			}
		}
		if out.Surplus != uint64(c.trades)*(c.price-c.pay) {
			t.Errorf("%s: a surplus of %d", c.why, out.Surplus)
		}
	}
}

// With fewer than a rule takes nothing is ever traded, whatever is bid; with as many something may be.
func TestFewestWhoTrade(t *testing.T) {
	for _, rule := range []Rule{McAfee, SBBA, Exponential} {
		buyers, sellers := rule.Fewest()
		p := Params{Rule: rule, Epsilon: 1000, Grid: Grid{Least: 1, Step: 1, Count: 9}}
		for n := range 3 {
			for m := range 3 {
				var bids, asks []uint64
				for i := range n {
					bids = append(bids, uint64(9-i))
				}
				for j := range m {
					asks = append(asks, uint64(1+j))
				}
				out, _, err := Clear(singlesOf(t, bids, asks), p, Standard)
				if err != nil || (len(out.Trades) > 0) != (n >= buyers && m >= sellers) {
					t.Errorf("%v with %d buyers and %d sellers: %+v, %v", rule, n, m, out, err)
				}
			}
		}
	}
}

// The seller whom SBBA leaves out is drawn: over many seeds, each.
func TestSBBALeavesOutEachSeller(t *testing.T) {
	b := singlesOf(t, []uint64{9, 8, 7}, []uint64{1, 2, 3})
	left := map[uint32]int{0: 0, 1: 0, 2: 0}
	for s := range 300 {
		p := Params{Rule: SBBA}
		p.Seed[0], p.Seed[1] = byte(s), byte(s>>8)
		out, _, err := Clear(b, p, Standard)
		if err != nil {
			t.Fatal(err)
		}
		for _, trade := range out.Trades {
			left[trade.Fills[0].Provider]++
		}
	}
	for j, n := range left {
		if n < 150 || n > 250 { // 200 of 300 expected
			t.Errorf("seller %d trades %d times of 300", j, n)
		}
	}
}

// decay[i] is the greatest d with d ≤ 2⁶³·exp(−2^i/2000).
func TestDecay(t *testing.T) {
	for i, d := range decay {
		x := new(big.Rat).SetFrac64(-(1 << i), 2000<<10) // exp(x)^1024
		sum, term := new(big.Float).SetPrec(400).SetInt64(1), new(big.Float).SetPrec(400).SetInt64(1)
		step := new(big.Float).SetPrec(400).SetRat(x)
		for n := int64(1); n < 120; n++ {
			term.Mul(term, step).Quo(term, new(big.Float).SetInt64(n))
			sum.Add(sum, term)
		}
		for range 10 {
			sum.Mul(sum, sum)
		}
		want, _ := sum.SetMantExp(sum, 63).Uint64()
		if d != want {
			t.Errorf("decay of %d is %#x, want %#x", i, d, want)
		}
	}
	for n := uint64(0); n < 5000; n++ {
		if expNeg(n) < expNeg(n+1) {
			t.Fatalf("the odds grow at %d", n)
		}
	}
	if expNeg(0) != 1<<52 || expNeg(1<<17) != 0 {
		t.Error("the ends are wrong")
	}
}

// One bid more changes the odds of a price by a factor of exp(ε) at most: as 2000·ln of it, by 2ε.
func TestOneBidHardlyChangesTheOdds(t *testing.T) {
	const epsilon = 100
	all := []uint64{50, 40, 30, 30, 20, 10, 5}
	oddsOf := func(bids []uint64) (odds []*big.Rat) {
		var weights []uint64
		var sum uint64
		most := 0
		trades := make([]int, 12)
		for g := range trades {
			for i, bid := range bids {
				if bid >= uint64(5*g+1) && i < g+1 { // sellers at 1, 6, 11, …
					trades[g] = i + 1
				}
			}
			most = max(most, trades[g])
		}
		for _, n := range trades {
			weights = append(weights, expNeg(uint64(epsilon*(most-n))))
			sum += weights[len(weights)-1]
		}
		for _, w := range weights {
			odds = append(odds, new(big.Rat).SetFrac64(int64(w), int64(sum)))
		}
		return odds
	}
	limit := new(big.Rat).SetFrac64(1<<52+1<<20, int64(expNeg(2*epsilon)))
	for i := range all {
		one, two := oddsOf(all), oddsOf(append(append([]uint64(nil), all[:i]...), all[i+1:]...))
		for g := range one {
			for _, q := range []*big.Rat{new(big.Rat).Quo(one[g], two[g]), new(big.Rat).Quo(two[g], one[g])} {
				if q.Cmp(limit) > 0 {
					t.Fatalf("without bid %d the odds of price %d change by %s", i, g, q.FloatString(6))
				}
			}
		}
	}
}

// With a large ε the price at which most trade is drawn, with a small one each.
func TestEpsilonChooses(t *testing.T) {
	b := singlesOf(t, []uint64{60, 60, 60, 60}, []uint64{40, 40, 40, 40})
	for epsilon, want := range map[uint32]int{maxEpsilon: 1, 1: 7} {
		prices := map[uint64]bool{}
		for s := range 200 {
			p := Params{Rule: Exponential, Epsilon: epsilon, Grid: Grid{Least: 20, Step: 15, Count: 8}} // 50 alone suits both
			p.Seed[0] = byte(s)
			out, _, err := Clear(b, p, Standard)
			if err != nil {
				t.Fatal(err)
			}
			if len(out.Trades) > 0 {
				prices[out.Trades[0].Price] = true
			} else {
				prices[0] = true
			}
		}
		if want == 1 && (len(prices) != 1 || !prices[50]) || want > 1 && len(prices) < 2 {
			t.Errorf("ε %d: prices %v", epsilon, prices)
		}
	}
}

// Each kind clears by itself: beside another, its trades and prices are those that it has alone.
func TestKindsOfSinglesClearApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tasks, providers := markets(SBBA)[0].draw(t)
		p := drawParams(t, rapid.SampledFrom([]Rule{McAfee, SBBA, Exponential}).Draw(t, "rule"))
		_, alone := cleared(t, tasks, providers, p)
		for i := range tasks { // the same again, of kind 3
			x := tasks[i]
			x.ID[0], x.Demand = 1, Vector{3: 1}
			tasks = append(tasks, x)
		}
		for j := range providers {
			x := providers[j]
			x.ID[0], x.Capacity, x.Ask = 1, Vector{3: 1}, Vector{3: x.Ask[0]}
			providers = append(providers, x)
		}
		b, both := cleared(t, tasks, providers, p)
		var part Outcome
		for _, x := range both.Trades {
			if x.Fills[0].Kind == 0 {
				part.Trades = append(part.Trades, x)
			} else if b.Tasks[x.Task].ID[0] != 1 || b.Providers[x.Fills[0].Provider].ID[0] != 1 {
				t.Fatalf("%+v is of two kinds", x)
			}
		}
		if fmt.Sprint(part.Trades) != fmt.Sprint(alone.Trades) {
			t.Fatalf("%+v beside another kind, %+v alone", part.Trades, alone.Trades)
		}
	})
}

// Whose task a seller gets does not depend on what it asks: over many seeds each pair meets.
func TestPairsAreDrawn(t *testing.T) {
	b := singlesOf(t, []uint64{90, 80, 70, 10}, []uint64{1, 2, 3, 20})
	for _, r := range []Rule{McAfee, SBBA} {
		met := map[[2]uint32]bool{}
		for s := range 200 {
			p := Params{Rule: r}
			p.Seed[0] = byte(s)
			out, _, err := Clear(b, p, Standard)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range out.Trades {
				met[[2]uint32{x.Task, x.Fills[0].Provider}] = true
			}
		}
		if len(met) != 9 {
			t.Errorf("%s: %d pairs of 9 meet", r, len(met))
		}
	}
}

// Trades of many units at the price of one: nobody pays above its bid or earns below its ask, and what is paid is earned or left over.
func TestScaledTradesKeepTheirBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tasks, providers := markets(SBBA)[0].draw(t)
		p := drawParams(t, rapid.SampledFrom([]Rule{McAfee, SBBA, Exponential}).Draw(t, "rule"))
		b, out := cleared(t, tasks, providers, p)
		units := rapid.SliceOfN(rapid.Uint64Range(1, MaxBudget/500), len(b.Tasks), len(b.Tasks)).Draw(t, "units")
		out.Scale(b, func(task uint32) uint64 { return units[task] })
		var welfare, surplus uint64
		for _, x := range out.Trades {
			n, f := units[x.Task], x.Fills[0]
			if f.Units != n || x.Price > n*b.Tasks[x.Task].net() || f.Pay > x.Price || f.Pay < n*b.Providers[f.Provider].Ask[f.Kind] || x.Due[f.Kind] != f.Pay {
				t.Fatalf("%+v of %d units", x, n)
			}
			welfare += n*b.Tasks[x.Task].net() - x.Cost
			surplus += x.Price - f.Pay
		}
		if out.Welfare != welfare || out.Surplus != surplus || p.Rule != McAfee && surplus != 0 {
			t.Fatalf("%+v, want a welfare of %d and a surplus of %d", out, welfare, surplus)
		}
	})
}
