package book

import (
	"math/rand/v2"
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
				Price:     rapid.Uint64Range(40, 60).Draw(t, "price"),
				Providers: rapid.IntRange(1, 3).Draw(t, "n"),
			}
		}), 0, 8).Draw(t, "offers")
		best, ok := Best(bid, offers)
		for _, o := range offers {
			if bid.Meets(o) == nil && (!ok || o.Price < best.Price || o.Price == best.Price && o.Validator < best.Validator) {
				t.Fatalf("%+v beats %+v", o, best)
			}
		}
		if ok && bid.Meets(best) != nil {
			t.Fatal("the winner is not eligible")
		}
		rand.Shuffle(len(offers), func(i, j int) { offers[i], offers[j] = offers[j], offers[i] })
		again, okAgain := Best(bid, offers)
		if ok != okAgain || again.Price != best.Price || again.Validator != best.Validator {
			t.Fatal("the winner depends on the order of the book")
		}
	})
}
