package book

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMeetsSaysWhatIsMissing(t *testing.T) {
	good := Offer{Validator: "v", Price: 100, Providers: 3, Referees: 2}
	bid := Bid{MaxPrice: 100, Providers: 3, Referees: 2, Validator: "v"}
	if err := bid.Meets(good); err != nil {
		t.Fatal(err)
	}
	for want, bend := range map[string]func(*Offer){
		"names validator": func(o *Offer) { o.Validator = "w" },
		"providers":       func(o *Offer) { o.Providers = 2 },
		"independent":     func(o *Offer) { o.Referees = 1 },
		"pays at most":    func(o *Offer) { o.Price = 101 },
	} {
		o := good
		bend(&o)
		if err := bid.Meets(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestBestIsCheapestEligibleInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bid := Bid{MaxPrice: 50, Providers: 2}
		offers := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Offer {
			return Offer{
				Validator: rapid.StringMatching(`[a-d]`).Draw(t, "v"),
				Price:     rapid.Uint64Range(48, 52).Draw(t, "price"),
				Since:     rapid.Int64Range(1, 3).Draw(t, "since"),
				Providers: rapid.IntRange(1, 3).Draw(t, "n"),
			}
		}), 0, 8).Draw(t, "offers")
		best, ok := Best(bid, offers)
		for _, o := range offers {
			if bid.Meets(o) == nil && (!ok || o.Price < best.Price || o.Price == best.Price && (o.Since < best.Since || o.Since == best.Since && o.Validator < best.Validator)) {
				t.Fatalf("%+v beats %+v", o, best)
			}
		}
		if ok && bid.Meets(best) != nil {
			t.Fatal("the winner is not eligible")
		}
		rand.Shuffle(len(offers), func(i, j int) { offers[i], offers[j] = offers[j], offers[i] })
		again, okAgain := Best(bid, offers)
		if ok != okAgain || again.Price != best.Price || again.Since != best.Since || again.Validator != best.Validator {
			t.Fatal("the winner depends on the order of the book")
		}
	})
}

// An offer keeps its time only while it asks as much, and stands for no more than has waited.
func TestReplacedOfferKeepsItsTime(t *testing.T) {
	p := Place{FeeBps: 500, MaxLeases: 4, Since: 7}
	for name, x := range map[string]struct {
		fee, leases uint32
		since       int64
	}{
		"the same":       {500, 4, 7},
		"fewer leases":   {500, 1, 7},
		"more leases":    {500, 5, 9},
		"a lower fee":    {499, 4, 9},
		"a higher fee":   {501, 4, 9},
		"lower and less": {499, 1, 9},
	} {
		if got := p.Replaced(x.fee, x.leases, 9); got != (Place{x.fee, x.leases, x.since}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// No sequence of replacements gets an offer before one that has stood longer at terms that it did not have then.
func TestNoReplacementJumpsTheQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Place{FeeBps: 2, MaxLeases: 2, Since: 0}
		same := int64(0) // since when fee and size have been as they are now, or the size larger
		for now := int64(1); now < 20; now++ {
			fee, leases := rapid.Uint32Range(1, 3).Draw(t, "fee"), rapid.Uint32Range(1, 3).Draw(t, "leases")
			if fee != p.FeeBps || leases > p.MaxLeases {
				same = now
			}
			if p = p.Replaced(fee, leases, now); p.Since != same || p.FeeBps != fee || p.MaxLeases != leases {
				t.Fatalf("at %d: %+v, and its terms stand since %d", now, p, same)
			}
		}
	})
}

func TestWaitDoubles(t *testing.T) {
	var got []int64
	for d := int64(0); len(got) < 9; got = append(got, d) {
		d = Wait(d)
	}
	if want := []int64{10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 600_000, 600_000, 600_000}; !slices.Equal(got, want) {
		t.Errorf("%d", got)
	}
}
