package auction

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// gain is what a task is worth to who bids for it, less what it pays.
func gain(b *Book, out *Outcome, who [32]byte, worth uint64) int64 {
	for _, trade := range out.Trades {
		if t := &b.Tasks[trade.Task]; t.ID == who {
			return int64(worth) - int64(t.Fee) - int64(trade.Price)
		}
	}
	return 0
}

// earned is what a provider gets, less what its units cost it.
func earned(b *Book, out *Outcome, who [32]byte, cost uint64) (sum int64) {
	for _, trade := range out.Trades {
		for _, f := range trade.Fills {
			if b.Providers[f.Provider].ID == who {
				sum += int64(f.Pay) - int64(f.Units*cost)
			}
		}
	}
	return sum
}

// cleared clears copies of what is bid.
func cleared(t *rapid.T, tasks []Task, providers []Provider, p Params) (*Book, *Outcome) {
	b := book(t, append([]Task(nil), tasks...), append([]Provider(nil), providers...))
	out, _, err := Clear(b, p, Standard)
	if err != nil {
		t.Fatal(err)
	}
	return b, out
}

// Under the truthful rules no buyer gains by any other bid, nor by demanding more, up to the one utally by which providers'
// shares are rounded.
func TestBuyersGainNothingByShading(t *testing.T) {
	for _, r := range []Rule{Critical, McAfee, SBBA} {
		for _, m := range markets(r) {
			if m.extreme {
				continue // each deviation is tried
			}
			t.Run(r.String(), rapid.MakeCheck(func(t *rapid.T) {
				tasks, providers := m.draw(t)
				if r == Critical {
					b := tight(t, 2)
					tasks, providers = b.Tasks, b.Providers
				}
				if len(tasks) == 0 {
					return
				}
				p := drawParams(t, r)
				who := rapid.IntRange(0, len(tasks)-1).Draw(t, "who")
				worth := tasks[who].Budget
				b, out := cleared(t, tasks, providers, p)
				honest := gain(b, out, tasks[who].ID, worth)
				for range 30 {
					bent := append([]Task(nil), tasks...)
					bent[who].Budget = rapid.Uint64Range(bent[who].Fee, 2*worth+bent[who].Fee).Draw(t, "bid")
					if r == Critical {
						bent[who].Demand[0] += rapid.Uint64Range(0, 2).Draw(t, "more")
					}
					b, out := cleared(t, bent, providers, p)
					most := int64(0)
					for _, trade := range out.Trades {
						most = max(most, int64(len(trade.Fills)))
					}
					if got := gain(b, out, tasks[who].ID, worth); r == Critical && got > honest+most || r != Critical && got > honest {
						t.Fatalf("a bid of %d in place of %d gains %d in place of %d", bent[who].Budget, worth, got, honest)
					}
				}
			}))
		}
	}
}

// Sellers of single units gain nothing either.
func TestSellersGainNothingByShading(t *testing.T) {
	for _, r := range []Rule{McAfee, SBBA} {
		t.Run(r.String(), rapid.MakeCheck(func(t *rapid.T) {
			tasks, providers := markets(r)[0].draw(t)
			if len(providers) == 0 {
				return
			}
			p := drawParams(t, r)
			who := rapid.IntRange(0, len(providers)-1).Draw(t, "who")
			cost := providers[who].Ask[0]
			honest := gainOfSeller(t, tasks, providers, p, who, cost)
			for range 8 {
				bent := append([]Provider(nil), providers...)
				bent[who].Ask[0] = rapid.Uint64Range(1, 2*cost).Draw(t, "ask")
				if got := gainOfSeller(t, tasks, bent, p, who, cost); got > honest+1e-9 {
					t.Fatalf("an ask of %d in place of %d earns %g in place of %g", bent[who].Ask[0], cost, got, honest)
				}
			}
		}))
	}
}

// gainOfSeller is what a seller earns on average over all whom chance may leave out.
func gainOfSeller(t *rapid.T, tasks []Task, providers []Provider, p Params, who int, cost uint64) (mean float64) {
	chances := 1
	if p.Rule == SBBA {
		chances = 200 // of eight sellers each is left out once at least, but for odds of 10⁻¹¹
	}
	byTraders := map[string]int64{}
	for s := range chances {
		p.Seed[1] = byte(s)
		b, out := cleared(t, tasks, providers, p)
		var names []byte
		for _, trade := range out.Trades {
			names = append(names, byte(trade.Fills[0].Provider))
		}
		slices.Sort(names) // who meets whom changes nothing
		byTraders[string(names)] = earned(b, out, providers[who].ID, cost)
	}
	for _, x := range byTraders {
		mean += float64(x)
	}
	return mean / float64(len(byTraders))
}

// Under the midpoint rule a buyer does gain by bidding less: that is its price for a balanced budget.
func TestMidpointIsNotTruthful(t *testing.T) {
	providers := []Provider{{ID: id(1), Capacity: Vector{4}, Ask: Vector{1}}}
	for bid, want := range map[uint64]int64{100: 48, 10: 93, 4: 96} {
		b := book(t, []Task{{ID: id(1), Demand: Vector{4}, Budget: bid}}, append([]Provider(nil), providers...))
		out, _, err := Clear(b, Params{}, Standard)
		if err != nil || gain(b, out, id(1), 100) != want {
			t.Errorf("a bid of %d gains %d, %v: want %d", bid, gain(b, out, id(1), 100), err, want)
		}
	}
}

// The least that critical charges is the least that wins, found by bidding.
func TestCriticalIsTheLeastThatWins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := tight(t, rapid.IntRange(1, 3).Draw(t, "kinds"))
		for i := range b.Tasks {
			b.Tasks[i].Age = uint32(rapid.IntRange(0, 3).Draw(t, "age"))
		}
		p := Params{Rule: Critical, AgeStep: 700, AgeMost: 2}
		out, _, err := Clear(b, p, Standard)
		if err != nil {
			t.Fatal(err)
		}
		for _, trade := range out.Trades {
			wins := func(net uint64) bool {
				bent := append([]Task(nil), b.Tasks...)
				bent[trade.Task].Budget = net
				other, out := cleared(t, bent, b.Providers, p)
				for _, won := range out.Trades {
					if other.Tasks[won.Task].ID == b.Tasks[trade.Task].ID {
						return true
					}
				}
				return false
			}
			low, high := uint64(0), b.Tasks[trade.Task].Budget
			for low < high {
				if mid := (low + high) / 2; wins(mid) {
					high = mid
				} else {
					low = mid + 1
				}
			}
			if trade.Price > low || trade.Price+uint64(len(trade.Fills)) < low {
				t.Fatalf("task %d pays %d, and wins from %d on", trade.Task, trade.Price, low)
			}
		}
	})
}
