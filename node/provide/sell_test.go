package provide

import (
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/match"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
)

// One lot that may not be on sale keeps no other from it, and it is told why.
func TestLotsAreSifted(t *testing.T) {
	tiers := match.Tiers{{Label: "A", Speed: 20e12}, {Label: "B", Speed: 5e12}, {Label: "C", Speed: 0}}
	lot := func(tier string, units uint64) auctionv1.Lot { return auctionv1.Lot{Tier: tier, Units: units, Ask: 1} }
	const day = 100 * 4 * 3600 // units of the slowest
	for _, c := range []struct {
		all   []auctionv1.Lot
		speed uint64
		fit   []string
		why   []string
	}{
		{[]auctionv1.Lot{lot("A", 1), lot("B", 2), lot("C", 3)}, 20e12, []string{"A", "B", "C"}, nil},
		{[]auctionv1.Lot{lot("A", 1), lot("B", 2), lot("C", 3)}, 6e12, []string{"B", "C"}, []string{"tier A takes 20000 GFLOP/s"}},
		{[]auctionv1.Lot{lot("A", 1), lot("C", day)}, 0, []string{"C"}, []string{"tier A"}},
		{[]auctionv1.Lot{lot("C", day+1), lot("D", 1)}, 0, nil, []string{"at once", "D"}},
		{[]auctionv1.Lot{lot("C", 1<<40)}, 0, nil, []string{"at once"}},
	} {
		got, why := sift(c.all, c.speed, tiers)
		var fit []string
		for _, l := range got {
			fit = append(fit, l.Tier)
		}
		if !slices.Equal(fit, c.fit) || len(why) != len(c.why) {
			t.Errorf("%v at %d: %v, %v", c.all, c.speed, fit, why)
			continue
		}
		for i, err := range why {
			if !strings.Contains(err.Error(), c.why[i]) {
				t.Errorf("%v, want %q", err, c.why[i])
			}
		}
	}
}

// A lot whose speed is near a bound costs no fee each time that the measured speed crosses it.
func TestWhatIsWorthSaying(t *testing.T) {
	lots := func(tiers string) (out []auctionv1.Lot) {
		for _, tier := range tiers {
			out = append(out, auctionv1.Lot{Tier: string(tier), Units: 1, Ask: 1})
		}
		return out
	}
	dear := []auctionv1.Lot{{Tier: "C", Units: 1, Ask: 2}}
	for _, c := range []struct {
		text            string
		on, wanted, fit []auctionv1.Lot
		want            bool
	}{
		{"all is said", lots("BC"), lots("BC"), lots("BC"), false},
		{"nothing is on sale", nil, lots("BC"), lots("BC"), true},
		{"nothing may be", nil, lots("BC"), nil, false},
		{"one was too fast", lots("BC"), lots("BC"), lots("C"), false},
		{"it is fast enough again", lots("BC"), lots("BC"), lots("BC"), false},
		{"one may be sold now", lots("C"), lots("BC"), lots("BC"), true},
		{"one is not wanted", lots("BC"), lots("C"), lots("C"), true},
		{"another price", lots("C"), dear, dear, true},
	} {
		if got := worthSaying(c.on, c.wanted, c.fit); got != c.want {
			t.Errorf("%s: %v", c.text, got)
		}
	}
}
