package match_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	. "github.com/tally-network/tally/core/match"
)

func TestLapse(t *testing.T) {
	const stake = 1_000_000
	var x Lapse
	if got := x.Capacity(stake, 10); got != 10*stake {
		t.Errorf("who has never failed may lead %d, not ten times its stake", got)
	}
	for _, left := range []uint64{5_000, 2_500, 1_250, 625, 625, 625} {
		if x = x.Fail(); x.Capacity(10_000, 1) != left {
			t.Errorf("%d of 10,000 are left, want %d", x.Capacity(10_000, 1), left)
		}
	}
	if half := x.Mend(stake/2, stake); x-half != 500_000_000 {
		t.Errorf("work for half the stake gives back %d of 10⁹", x-half)
	}
	// Who had a lot at stake never got anything back for leases that were small beside that, however many it led.
	const large, small = 1_000_000 * 1_000_000, 5_000_000 // utally
	y := Lapse(0).Fail()
	for range large / small {
		y = y.Mend(small, large)
	}
	if y != 0 {
		t.Errorf("leases that are worth the stake together leave a lapse of %d", y)
	}
	if x = x.Mend(stake, stake); x != 0 {
		t.Errorf("work for the whole stake leaves a lapse of %d", x)
	}
	if x.Fail().Capacity(stake, 0) != math.MaxUint64 {
		t.Error("without a factor there is a bound")
	}
}

func TestLapseProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x Lapse
		stake, factor := rapid.Uint64().Draw(t, "stake"), rapid.Uint64().Draw(t, "factor")
		most := x.Capacity(stake, factor)
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			before := x.Capacity(stake, factor)
			if rapid.Bool().Draw(t, "fails") {
				if x = x.Fail(); x.Capacity(stake, factor) > before {
					t.Fatal("a failure gives capacity")
				}
			} else if x = x.Mend(rapid.Uint64().Draw(t, "paid"), stake); x.Capacity(stake, factor) < before {
				t.Fatal("work takes capacity")
			}
			if now := x.Capacity(stake, factor); now > most || now < most/16-min(most/16, 1) {
				t.Fatalf("capacity of %d, from a sixteenth of %d to all of it", now, most)
			}
		}
	})
}
