package runner

import (
	"strings"
	"testing"

	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
)

// An order of auctions was explained as if it would have gone to an offer of another price.
func TestWhyAnAuctionedOrderDoesNotCome(t *testing.T) {
	c := auctionv1.Lot{Tier: "C", Units: 50, Ask: 800}
	for want, x := range map[string]struct {
		tier string
		lots []auctionv1.Lot
	}{
		"meets no standing offer: --sell C:GFLOP@PRICE":                               {"C", nil},
		"of tier B, and on sale are 50 GFLOP of tier C for 800 utally":                {"B", []auctionv1.Lot{c}},
		"the next auction, in which 50 GFLOP of tier C for 800 utally each or more t": {"C", []auctionv1.Lot{c}},
	} {
		if got := notSold("3f09abcdef", x.tier, x.lots); !strings.Contains(got, want) || !strings.HasPrefix(got, "order 3f09abcd waits") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
