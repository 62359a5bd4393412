package provide

import (
	"errors"
	"slices"
	"strings"
	"testing"

	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
)

// A provider put back on sale what its person had withdrawn by hand. What clearings take off it still puts back.
func TestWhatWasChangedByHandIsLeftAlone(t *testing.T) {
	b, c := auctionv1.Lot{Tier: "B", Units: 50, Ask: 900}, auctionv1.Lot{Tier: "C", Units: 100, Ask: 800}
	less, dearer := auctionv1.Lot{Tier: "C", Units: 40, Ask: 800}, auctionv1.Lot{Tier: "C", Units: 100, Ask: 999}
	want := []auctionv1.Lot{b, c}
	for name, x := range map[string]struct {
		said    uint64 // after 5 at the first look
		on      []auctionv1.Lot
		sell    []auctionv1.Lot
		changed []string
	}{
		"nothing happened":                  {5, want, want, nil},
		"a clearing has sold some":          {5, []auctionv1.Lot{b, less}, want, nil},
		"all was taken off by the chain":    {5, nil, want, nil},
		"withdrawn":                         {6, nil, nil, []string{"B", "C"}},
		"one tier withdrawn":                {6, []auctionv1.Lot{b}, []auctionv1.Lot{b}, []string{"C"}},
		"one tier dearer":                   {6, []auctionv1.Lot{b, dearer}, []auctionv1.Lot{b, dearer}, []string{"C"}},
		"another tier":                      {6, []auctionv1.Lot{{Tier: "A", Units: 1, Ask: 1}, b, c}, []auctionv1.Lot{{Tier: "A", Units: 1, Ask: 1}, b, c}, []string{"A"}},
		"as before, by hand":                {7, want, want, nil},
		"a chain that begins to count anew": {0, nil, want, nil},
	} {
		var h byHand
		if sell, changed := h.look(nil, 5, want); !slices.Equal(sell, want) || changed != nil {
			t.Errorf("%s: at the first look %v, %v", name, sell, changed)
		}
		for i := range 2 { // it is told once
			sell, changed := h.look(x.on, x.said, want)
			if !slices.Equal(sell, x.sell) || i == 0 && !slices.Equal(changed, x.changed) || i > 0 && changed != nil {
				t.Errorf("%s: sells %v, changed are %v", name, sell, changed)
			}
		}
		for _, tier := range x.changed {
			if !h.leftAlone(tier) {
				t.Errorf("%s: a bid for tier %s is made", name, tier)
			}
		}
	}
}

// A provider whose balance did not suffice for a sealed ask learnt it from a clearing that it missed.
func TestShortOfADeposit(t *testing.T) {
	if text := short("tally1p", 1_100_000, 1_100_000); text != "" {
		t.Error(text)
	}
	if text := short("tally1p", 100_000, 1_100_000); !strings.HasSuffix(text, "it has 100000: tally tx bank send FROM tally1p 1000000utally") {
		t.Error(text)
	}
}

// What the process itself has said is not taken for a person's word, even if it does not know whether it came through.
func TestOwnWordIsNotByHand(t *testing.T) {
	want := []auctionv1.Lot{{Tier: "C", Units: 100, Ask: 800}}
	for _, failed := range []error{nil, errors.New("in no block yet")} {
		var h byHand
		h.look(nil, 5, want)
		h.sent(failed)
		if sell, changed := h.look(nil, 6, want); !slices.Equal(sell, want) || changed != nil {
			t.Errorf("after %v: %v, %v", failed, sell, changed)
		}
	}
}
