package reserve

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// leastBurn is the least that is burnt for so much work: whoever sets rules sets at least MaxCap + 1 for a ut.
func leastBurn(micro uint64) uint64 {
	return (micro*(MaxCap+1) + microUT - 1) / microUT
}

// part is what an account gets of the pots of an epoch.
func part(t interface{ Fatal(...any) }, p *Payout, own [Kinds]uint64) (sum uint64) {
	for k := range p.Pots {
		pot := p.Pots[k]
		pay, _, err := pot.Take(own[k])
		if err != nil {
			t.Fatal(err)
		}
		sum += pay
	}
	return sum
}

// drawEpoch draws what all have done in an epoch, and what of it somebody has.
func drawEpoch(t *rapid.T) (e Epoch, own [Kinds]uint64) {
	for range rapid.IntRange(0, 4).Draw(t, "others") {
		micro := rapid.Uint64Range(1, 1<<50).Draw(t, "micro")
		w := [Kinds]uint64{rapid.Uint64Range(0, 100).Draw(t, "votes"), 0, rapid.Uint64Range(0, micro).Draw(t, "first")}
		if rapid.Bool().Draw(t, "drilling") {
			w[Drilling] = micro
		}
		if err := e.Count(micro, w); err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "own") {
			for k := range w {
				own[k] += w[k]
			}
		}
	}
	return e, own
}

// Whoever orders from itself, under as many names as it likes, with whatever votes and beside whatever others do, gains
// less by it than is burnt, though it ordered nothing else. Each share rounds down apart, so that less than a utally of
// each is gained by a crumb: transactions of an order cost more.
func TestWashingNeverPays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, held := drawRules(t), rapid.Uint64Range(0, 1<<62).Draw(t, "held")
		if rapid.Bool().Draw(t, "best for it") {
			r.Cap, held = MaxCap, 1<<62
			r.Bps, r.Jackpot, r.Insurance = [Kinds]uint32{bps - r.Bps[Joining], 0, r.Bps[Joining]}, 0, 0
		}
		e, own := drawEpoch(t)
		if own[Seats] == 0 && rapid.Bool().Draw(t, "validator") {
			own[Seats] = 1_000
			if err := e.Count(0, [Kinds]uint64{Seats: own[Seats]}); err != nil {
				t.Fatal(err)
			}
		}
		before, err := r.Close(held, &e)
		if err != nil {
			t.Fatal(err)
		}
		had, burnt := part(t, &before, own), uint64(0)
		for range rapid.IntRange(1, 8).Draw(t, "orders") {
			micro := rapid.OneOf(rapid.Uint64Range(1, 1_000_000), rapid.Uint64Range(1, 1<<50)).Draw(t, "washed")
			w := [Kinds]uint64{Joining: r.First(micro, rapid.Uint64Range(0, 1<<30).Draw(t, "before"))} // of any of its names
			if err := e.Count(micro, w); err != nil {
				t.Fatal(err)
			}
			own[Joining] += w[Joining]
			burnt += leastBurn(micro)
		}
		after, err := r.Close(held, &e)
		if err != nil {
			t.Fatal(err)
		}
		const crumbs = uint64(Kinds)
		if got := part(t, &after, own); got >= had+burnt+crumbs {
			t.Fatalf("%d utally are burnt, and %d more are earned", burnt, got-had)
		}
	})
}

// Whoever has all votes and gets all of what joins is all but paid back what it burnt for itself, where the rules are
// as bad as they can be: a vote that has the cap at its most and burn_ut at its least leaves a thousandth.
func TestWashingAtItsBest(t *testing.T) {
	r := rules()
	r.Halving, r.Cap, r.Bps, r.Jackpot, r.Insurance, r.JoiningUT = 1, MaxCap, [Kinds]uint32{5_000, 0, 5_000}, 0, 0, maxUT
	micro := uint64(1 << 40)
	e, own := Epoch{}, [Kinds]uint64{Seats: 3, Joining: micro}
	if err := e.Count(micro, own); err != nil {
		t.Fatal(err)
	}
	p, err := r.Close(1<<62, &e)
	if got, burnt := part(t, &p, own), leastBurn(micro); err != nil || got >= burnt || got < burnt-burnt/999 {
		t.Errorf("%d utally of %d are earned back, %v", got, burnt, err)
	}
}

// However thinly work is spread over names and orders, it is paid no more than at once.
func TestDustIsPaidNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, e := drawRules(t), Epoch{}
		r.JoiningUT = maxUT // all of it is somebody's first
		weights := rapid.SliceOfN(rapid.Uint64Range(1, 2_000), 1, 100).Draw(t, "weights")
		for _, micro := range weights {
			if err := e.Count(micro, [Kinds]uint64{Seats: 1, Drilling: micro, Joining: micro}); err != nil {
				t.Fatal(err)
			}
		}
		p, err := r.Close(1<<62, &e)
		if err != nil {
			t.Fatal(err)
		}
		sum := uint64(0)
		for _, micro := range weights {
			sum += part(t, &p, [Kinds]uint64{Drilling: micro, Joining: micro})
		}
		if bps := uint64(r.Bps[Drilling] + r.Bps[Joining]); sum > e.Credited*r.Cap*bps/(microUT*10_000) {
			t.Fatalf("%d utally for %d µut in %d crumbs", sum, e.Credited, len(weights))
		}
	})
}

// Each share pays what the rules say, of work alone that it rewards, and what is over stays.
func TestEachShare(t *testing.T) {
	e := Epoch{Credited: 1_000 * microUT, Weights: [Kinds]uint64{7, 100 * microUT, 10 * microUT}}
	for name, c := range map[string]struct {
		held uint64
		want Payout
	}{
		"capped":   {1 << 60, Payout{Pots: [Kinds]Pot{NewPot(320_000, 7), NewPot(24_000, 100*microUT), NewPot(800, 10*microUT)}, Jackpot: 80_000, Insurance: 80_000}},
		"budgeted": {50_590 * 1_000, Payout{Pots: [Kinds]Pot{NewPot(400, 7), NewPot(300, 100*microUT), NewPot(100, 10*microUT)}, Jackpot: 100, Insurance: 100}},
	} {
		if got, err := rules().Close(c.held, &e); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		for k := range Kinds { // nobody has a part in it: nobody is paid, and the others no more
			less := e
			less.Weights[k] = 0
			want := c.want
			want.Pots[k] = Pot{}
			if got, err := rules().Close(c.held, &less); err != nil || got != want {
				t.Errorf("%s, without %d: %+v, %v", name, k, got, err)
			}
		}
	}
	if got, err := rules().Close(1<<60, &Epoch{Weights: [Kinds]uint64{Seats: 7}}); err != nil || got != (Payout{}) {
		t.Errorf("idle validators are paid %+v, %v", got, err)
	}
}

// Whatever rules and however long: all that was paid and all that is held are what there was.
func TestSharesAreWhatLeaves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.Uint64Range(0, 1<<62).Draw(t, "reserve")
		held, paid := all, new(big.Int)
		for range rapid.IntRange(1, 20).Draw(t, "epochs") {
			r := drawRules(t)
			e, _ := drawEpoch(t)
			p, err := r.Close(held, &e)
			if err != nil {
				t.Fatal(err)
			}
			out := p.Owed() + p.Jackpot + p.Insurance
			if out > held {
				t.Fatalf("%d of %d are paid", out, held)
			}
			held -= out
			for _, x := range []uint64{p.Pots[Seats].Pay, p.Pots[Drilling].Pay, p.Pots[Joining].Pay, p.Jackpot, p.Insurance} {
				paid.Add(paid, new(big.Int).SetUint64(x))
			}
		}
		if paid.Add(paid, new(big.Int).SetUint64(held)).Cmp(new(big.Int).SetUint64(all)) != 0 {
			t.Fatalf("%s utally are somewhere, there were %d", paid, all)
		}
	})
}
