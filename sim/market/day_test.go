package market

import (
	"context"
	"errors"
	"math"
	"reflect"
	"testing"
)

func play(t *testing.T, o Options) *Report {
	t.Helper()
	r, err := Day(context.Background(), o) // which checks that no money comes or goes
	if err != nil {
		t.Fatal(err)
	}
	r.Memory = 0
	return r
}

// A day is what its seed makes it. Work is bought, paid and credited, and more is burnt than credit costs.
func TestDay(t *testing.T) {
	o := Options{Providers: 3_000, Orders: 6_000, Hours: 24, BlockMs: 2_000, Seed: 1}
	r, again := play(t, o), play(t, o)
	if !reflect.DeepEqual(r, again) {
		t.Error("another day with the same seed")
	}
	posted, matched, settled, expired := 0, 0, 0, 0
	for _, h := range r.Hours {
		posted, matched, settled, expired = posted+h.Posted, matched+h.Matched, settled+h.Settled, expired+h.Expired
		if h.Bound > 0 && h.Cleared > h.Bound {
			t.Errorf("hour %d: a clearing of %.0f utally, above its bound of %.0f", h.Hour, h.Cleared, h.Bound)
		}
	}
	last := r.Hours[len(r.Hours)-1]
	if posted != matched+expired+last.Open || matched != settled+last.Running {
		t.Errorf("%d orders were posted, %d matched, %d expired, %d are open; %d were settled, %d run", posted, matched, expired, last.Open, settled, last.Running)
	}
	if matched < posted/2 || r.BurntPerUT < 5_000 || r.Credited == 0 || r.Gini <= 0 || r.Gini >= 1 {
		t.Errorf("%d of %d orders matched, %.0f ut credited, %.0f utally burnt for each, Gini %.2f", matched, posted, r.Credited, r.BurntPerUT, r.Gini)
	}
	if r.Third <= r.Credited/2*0.9 || r.ThirdCosts < r.Third*5_000/1e6*0.99 {
		t.Errorf("a third of the power: %.0f of %.0f ut for %.0f tally", r.Third, r.Credited, r.ThirdCosts)
	}
	if shock := r.Hours[shockBegins]; shock.Auction[2].Price <= r.Hours[shockBegins-3].Auction[2].Price {
		t.Errorf("where demand tripled, prices went from %.0f to %.0f", r.Hours[shockBegins-3].Auction[2].Price, shock.Auction[2].Price)
	}
	if first := r.Hours[0]; last.Spread > 0.8*first.Spread {
		t.Errorf("what learning providers ask spreads by %.3f at first, and by %.3f in the end", first.Spread, last.Spread)
	}
}

// Whoever asks twice what work costs earns less than who asks what it costs.
func TestGreedEarnsLess(t *testing.T) {
	r := play(t, Options{Providers: 3_000, Orders: 6_000, Hours: 24, BlockMs: 4_000, Seed: 2})
	if r.Earnings[greedy].Mean >= r.Earnings[truthful].Mean {
		t.Errorf("%+v", r.Earnings)
	}
}

func TestDayRefuses(t *testing.T) {
	for _, o := range []Options{{}, {Providers: 1, Orders: 1, Hours: 1, BlockMs: 1}, {Providers: 100, Orders: 1, Hours: 1, BlockMs: period + 1}} {
		if _, err := Day(context.Background(), o); err == nil {
			t.Errorf("%+v was played", o)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := Day(ctx, Options{Providers: 100, Orders: 100, Hours: 1, BlockMs: 2_000}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Clearings of small books have nearly the greatest welfare, and never more.
func TestShares(t *testing.T) {
	all, err := Shares(context.Background(), 60, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.OfOptimum > 1 || s.OfOptimum < 0.98 || s.Worst < 0.7 || s.OfBound > s.OfOptimum || s.Books < 50 {
			t.Errorf("%+v", s)
		}
	}
}

func TestGini(t *testing.T) {
	for want, all := range map[float64][]float64{0: {3, 3, 3}, 0.75: {0, 0, 0, 8}, 0.25: {1, 3}} {
		if got := gini(all); math.Abs(got-want) > 1e-12 {
			t.Errorf("%v: %g, want %g", all, got, want)
		}
	}
}
