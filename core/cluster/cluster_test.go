package cluster

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

var (
	near = Link{1_000, 100_000_000}
	far  = Link{300_000, 1_000_000}
)

func TestBetween(t *testing.T) {
	for name, x := range map[string]struct{ a, b, want Link }{
		"nobody has seen it":              {Link{}, Link{}, Link{}},
		"both agree":                      {near, near, near},
		"the slower counts":               {near, far, far},
		"each the slower of one":          {Link{5, 10}, Link{6, 20}, Link{6, 10}},
		"one alone, better than assumed":  {near, Link{}, Assumed},
		"one alone, worse than assumed":   {Link{}, far, far},
		"the rate was seen by one alone":  {Link{5, 100_000_000}, Link{6, 0}, Link{6, Assumed.Rate}},
		"the trip was seen by one alone":  {Link{5, 10}, Link{0, 20}, Link{Assumed.RTT, 10}},
		"each has seen what the other no": {Link{RTT: 5}, Link{Rate: 1 << 40}, Assumed},
	} {
		if got := Between(x.a, x.b); got != x.want {
			t.Errorf("%s: %+v, want %+v", name, got, x.want)
		}
	}
}

var links = rapid.Custom(func(t *rapid.T) Link {
	return Link{
		rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64Range(1, 1_000_000), rapid.Uint64()).Draw(t, "rtt"),
		rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64Range(1, 1_000_000_000), rapid.Uint64()).Draw(t, "rate"),
	}
})

// Whatever one end says, the link costs no less than by the other end's honest word, or than assumed if that has none.
func TestNeitherEndBettersALink(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		honest, said := links.Draw(t, "honest"), links.Draw(t, "said")
		cost := func(l Link) uint64 { return Standard.Cost(&Provider{}, l, Profile{}).Exchange }
		if got := Between(honest, said); cost(got) < cost(honest) || got != Between(said, honest) {
			t.Fatalf("between %+v and %+v it is %+v", honest, said, got)
		}
	})
}

func TestCost(t *testing.T) {
	p := Provider{Region: "DE", Speed: 50_000_000_000} // its unit takes 2 s
	for name, x := range map[string]struct {
		link    Link
		cluster Profile
		want    Cost
	}{
		"nothing is known":         {Link{}, Profile{}, Cost{Exchange: 800_000 + 4_194_304}},
		"alike":                    {near, Profile{"DE", p.Speed}, Cost{Exchange: 8_000 + 167_772}},
		"the others are faster":    {near, Profile{"DE", 2 * p.Speed}, Cost{Exchange: 175_772, Wait: 1_000_000}},
		"the others are slower":    {near, Profile{"DE", p.Speed / 2}, Cost{Exchange: 175_772, Wait: 2_000_000}},
		"another region":           {near, Profile{"FR", 0}, Cost{Exchange: 175_772, Abroad: 1_000_000}},
		"absurd":                   {Link{math.MaxUint64, 1}, Profile{"FR", 1}, Cost{Exchange: 2 * most, Wait: most - 2_000_000, Abroad: 1_000_000}},
		"it has not been measured": {Link{RTT: 100_000}, Profile{}, Cost{Exchange: 800_000 + 4_194_304}},
	} {
		if got := Standard.Cost(&p, x.link, x.cluster); got != x.want {
			t.Errorf("%s: %+v, want %+v", name, got, x.want)
		}
	}
}

func TestProfile(t *testing.T) {
	all := []*Provider{{Region: "FR", Speed: 9}, {Region: "DE"}, {Speed: 1}, {Region: "FR", Speed: 5}, {Region: "DE", Speed: 7}}
	if got := profile(all, Profile{"US", 8}); got != (Profile{"DE", 5}) {
		t.Errorf("%+v", got)
	}
	if got := profile([]*Provider{{Speed: 3}}, Profile{"US", 8}); got != (Profile{"US", 3}) {
		t.Errorf("of one that says no region %+v", got)
	}
}

func TestRoom(t *testing.T) {
	for _, x := range [][3]int{{0, 0, 0}, {5, 0, 0}, {1, 4, 8}, {32, 4, 10}, {33, 4, 11}, {100_000, 100, 1250}} {
		if got := Room(x[0], x[1]); got != x[2] {
			t.Errorf("%d providers, %d validators: %d, want %d", x[0], x[1], got, x[2])
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n, m := rapid.IntRange(0, 100_000).Draw(t, "n"), rapid.IntRange(1, 1000).Draw(t, "m")
		if r := Room(n, m); r*m < n || r > 8 && (r-1)*4*m >= 5*n {
			t.Fatalf("%d", r)
		}
	})
}
