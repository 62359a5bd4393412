package market

import (
	"context"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/sim"
)

// An attack keeps its row whatever it earns, and a seed gives the same rows again. What a bond or burn stands against loses by
// far; understated bids are known to gain, and must be seen to.
func TestCatalogue(t *testing.T) {
	t.Parallel()
	all, err := Catalogue(context.Background(), 30, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	verdicts := map[string]Verdict{}
	for _, a := range all {
		t.Logf("%+v", a)
		verdicts[a.Name] = a.Verdict
	}
	for _, known := range []string{"provider is late", "provider forges a unit", "provider withholds its data", "lead declines",
		"auditor alarms falsely", "custodian keeps nothing", "challenger challenges blindly", "wash training"} {
		if verdicts[known] != Loses {
			t.Errorf("%s: %q", known, verdicts[known])
		}
	}
	if name := "understated worth, midpoint"; verdicts[name] != Gains {
		t.Errorf("%s: %q", name, verdicts[name])
	}
	if want := len(attacks()); len(all) != want || want < len(sim.Deviations())+4*len(auctionRules) {
		t.Errorf("%d rows, want %d", len(all), want)
	}
}

func TestCatalogueFollowsFromItsSeed(t *testing.T) {
	t.Parallel()
	var played [2][]Attack
	for i := range played {
		var err error
		if played[i], err = Catalogue(context.Background(), 5, 3, nil); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(played[0], played[1]) {
		t.Error("another catalogue with the same seed")
	}
}

// An attack on leases is played by the rules of a new chain, but for times: no other rule is bent so that it loses.
func TestAttacksArePlayedAtDefaultRules(t *testing.T) {
	want := job.DefaultParams
	want.Speed, want.Link, want.Allowance = rules.Speed, rules.Link, rules.Allowance
	if rules != want {
		t.Errorf("%+v", rules)
	}
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		mean, half float64
		want       Verdict
	}{{-2, 1, Loses}, {2, 1, Gains}, {-1, 1, Undecided}, {1, 1, Undecided}, {0, 0, Zero}, {0, 1, Undecided}} {
		if p := newProfit(c.mean, c.half); p.Verdict != c.want {
			t.Errorf("%+v, want %s", p, c.want)
		}
	}
	mean, half := interval([]sim.Game{{Gain: 1, Weight: 1}, {Gain: 5, Weight: 3}})
	if mean != 4 || math.Abs(half-1.96*1.5) > 1e-9 {
		t.Errorf("%g ± %g", mean, half)
	}
}

// At clearings selling under several names gains next to nothing. At the book it is known to gain, and must be seen to.
func TestSplits(t *testing.T) {
	all, err := Splits(context.Background(), 60, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if book := s.At == "the book"; book != (s.Verdict == Gains) || !book && s.Gain-s.Error > 0.001 {
			t.Errorf("%+v", s)
		}
	}
}

// Every sweep has all its points, whatever comes of them. Who looks at nothing gains where nothing is forced.
func TestSweeps(t *testing.T) {
	t.Parallel()
	all, err := Sweeps(context.Background(), 10, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	planned := slices.Concat(sweepsOfLeases(), sweepsOfBids())
	if len(all) != len(planned) || len(sweepsOfLeases()) != len(sweptDeviations)+3 {
		t.Fatalf("%d sweeps, want %d; %d of leases", len(all), len(planned), len(sweepsOfLeases()))
	}
	for i, s := range all {
		if len(s.Points) != len(planned[i].at) {
			t.Errorf("%s: %d points, want %d", s.Attack, len(s.Points), len(planned[i].at))
		}
		if s.Attack == "auditor passes unseen" && !slices.Contains(s.Pays(), 0) {
			t.Errorf("%+v", s)
		}
	}
}

// The faster a machine is, the less it takes to pass for one of the next tier. Washing costs what credit burns, at least.
func TestThresholds(t *testing.T) {
	all, err := Thresholds()
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range all {
		if x.PaysFrom <= 0 {
			t.Errorf("%+v", x)
		}
		if strings.HasSuffix(x.Attack, "as tier A") && i > 0 && x.PaysFrom >= all[i-1].PaysFrom {
			t.Errorf("%+v after %+v", x, all[i-1])
		}
		if strings.HasPrefix(x.Attack, "wash") && x.PaysFrom < float64(job.DefaultParams.BurnUT) {
			t.Errorf("%+v", x)
		}
	}
}
