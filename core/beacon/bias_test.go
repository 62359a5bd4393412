package beacon

import (
	"math"
	"testing"

	"github.com/tally-network/tally/core/canon"
)

// attacker withholds values until a draw suits it. A value suits it with one chance in `one`.
// Its outputs are hashes of what VRFs are evaluated on and of who evaluates: nobody else knows
// them, and it cannot choose them.
type attacker struct {
	one      uint64
	calendar Calendar
}

func (a attacker) suits(s *State) bool { return Draw(s.Value, Replicas, nil).Below(0, a.one) == 0 }

// with returns the beacon after a block that a proposer gave the value of.
func (a attacker) with(s State, proposer, height int) State {
	out := canon.Sum(canon.DomainDraw, s.Input(int64(height)), []byte{byte(proposer), byte(proposer >> 8)})
	if err := s.Advance(a.calendar, int64(height), out[:]); err != nil {
		panic(err)
	}
	return s
}

// single plays a draw by the value of one block. Proposers are the attacker's with chance f,
// in every turn anew; it withholds what does not suit it.
func (a attacker) single(s State, height int, f float64, chance func() float64) bool {
	for proposer := height * 100; ; proposer++ {
		mine := chance() < f
		if next := a.with(s, proposer, height); !mine || a.suits(&next) {
			return a.suits(&next)
		}
	}
}

// tail plays the end of an epoch whose last run turns are the attacker's, as the rotation has
// it: a round that fails is the next one's turn, and the next block is that one's turn as well.
// It knows all of their outputs beforehand. It may also fail all of its rounds of the last
// block; then an honest proposer follows, whose output it does not know.
func (a attacker) tail(s State, first, run int) (ways int, ok bool) {
	var play func(s State, j int)
	play = func(s State, j int) {
		if j == run {
			ways++
			ok = ok || a.suits(&s)
			return
		}
		for turn := j; turn < run; turn++ {
			play(a.with(s, turn, first+j), j+1)
		}
	}
	play(s, 0)
	if !ok { // nothing to lose by an honest value
		for j := range run - 1 {
			s = a.with(s, j, first+j)
		}
		s = a.with(s, 1<<15, first+run-1)
		ok = a.suits(&s)
	}
	return ways, ok
}

// Withholding is worth what the formulas of docs/spec/beacon.md say: not more. Run with -v, it
// prints the odds that a draw suits an attacker, for one that would suit it once in 100 times.
func TestWithholdingIsWorthWhatTheFormulaSays(t *testing.T) {
	const one, runs = 100, 6_000
	a := attacker{one: one, calendar: Calendar{Height: 1, Length: 1 << 20}}
	p := 1.0 / one
	near := func(what string, hits int, want float64) {
		t.Helper()
		got := float64(hits) / runs
		t.Logf("%-40s played %.4f, formula %.4f, without it %.4f", what, got, want, p)
		if dev := math.Sqrt(want * (1 - want) / runs); math.Abs(got-want) > 5*dev {
			t.Errorf("%s: %.4f of the draws suit, want %.4f", what, got, want)
		}
	}
	begin := func(i int) State {
		return a.with(Begin("bias"), i, 1)
	}
	for _, f := range []float64{0, 0.1, 1. / 3, 0.5} {
		hits, n := 0, uint64(0)
		chance := func() float64 { n++; return float64(lots(n).Below(7, 1<<30)) / (1 << 30) }
		for i := range runs {
			if a.single(begin(i), 2, f, chance) {
				hits++
			}
		}
		near(map[float64]string{0: "one draw, f = 0", 0.1: "one draw, f = 1/10", 1. / 3: "one draw, f = 1/3", 0.5: "one draw, f = 1/2"}[f], hits, p/(1-f*(1-p)))
	}
	for run, ways := range []int{1, 1, 2, 6, 24} {
		if run == 0 {
			continue
		}
		hits := 0
		for i := range runs {
			n, ok := a.tail(begin(i), 2, run)
			if n != ways {
				t.Fatalf("a run of %d has %d ways, want %d", run, n, ways)
			}
			if ok {
				hits++
			}
		}
		near([]string{"", "epoch that ends in 1 turn", "epoch that ends in 2 turns", "epoch that ends in 3 turns", "epoch that ends in 4 turns"}[run], hits, 1-math.Pow(1-p, float64(ways+1)))
	}
}
