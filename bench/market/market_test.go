package market

import (
	"testing"

	"github.com/tally-network/tally/core/auction"
)

// What the figures are held to, on fewer books than they are of.
func TestRulesAreAsGoodAsTheyShould(t *testing.T) {
	shares := map[string]Share{}
	for _, m := range Methods {
		s, err := Welfare(m, 60)
		if err != nil {
			t.Fatal(err)
		}
		if shares[m.Name] = s; s.Mean > 1 || s.Worst > s.Mean || s.Books < 50 {
			t.Errorf("%s: %+v", m.Name, s)
		}
	}
	if s := shares["posted"]; s.Mean < 0.985 || s.Worst < 0.8 {
		t.Errorf("a posted clearing finds %+v of the optimum", s)
	}
	if shares["posted"].Mean < shares["fallback"].Mean || shares["fallback"].Mean < shares["standard"].Mean || shares["standard"].Mean < shares["literal"].Mean {
		t.Errorf("%v", shares)
	}
	for _, r := range SingleRules {
		s, err := SingleWelfare(r, 30, 10)
		if err != nil || s.Mean > 1 || s.Mean < 0.3 {
			t.Errorf("%s: %+v, %v", r, s, err)
		}
	}
}

func TestLyingPaysWhereItIsSaidTo(t *testing.T) {
	for r, truthful := range map[auction.Rule]bool{auction.Critical: true, auction.McAfee: true, auction.SBBA: true, auction.Midpoint: false} {
		g, err := Shading(r, 8)
		if err != nil {
			t.Fatal(err)
		}
		if (g.Most < 1e-5) != truthful {
			t.Errorf("%s: a lie gains %g of a budget", r, g.Most)
		}
	}
}

func TestTimeIsOfClearings(t *testing.T) {
	took, err := Time(500, 2)
	if err != nil || len(took.Clear) != 2 || len(took.Check) != 2 || took.Bytes < 500*(120+168) {
		t.Errorf("%+v, %v", took, err)
	}
}
