package life

import (
	"math/rand/v2"
	"strings"
	"testing"

	drillingv1 "github.com/tally-network/tally/gen/tally/drilling/v1"
	powerv1 "github.com/tally-network/tally/gen/tally/power/v1"

	"github.com/tally-network/tally/engine/cpu"
)

// Every kind of order is drawn about as often as its weight says, and one seed draws the same ones.
func TestKindsAreDrawnByWeight(t *testing.T) {
	const draws = 20_000
	a, b, got, all := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(1, 2)), map[string]int{}, 0
	for range draws {
		k := drawn(a)
		if again := drawn(b); again != k {
			t.Fatalf("one seed draws %s and %s", k.name, again.name)
		}
		got[k.name]++
	}
	for i := range kinds {
		all += kinds[i].weight
	}
	for i := range kinds {
		k := &kinds[i]
		if want := draws * k.weight / all; got[k.name] < want*9/10 || got[k.name] > want*11/10 {
			t.Errorf("%s was drawn %d times of %d, want about %d", k.name, got[k.name], draws, want)
		}
	}
}

// An order of each kind can be made, no two are the same, and an honest run of it ends.
func TestOrdersOfAllKinds(t *testing.T) {
	roots := map[string]string{}
	for _, k := range append(kinds, drilling) {
		for number := range uint64(2) {
			d, err := k.draft(t.Context(), number, rand.New(rand.NewPCG(number, 0)), 7, cpu.New(1))
			if err != nil {
				t.Fatalf("%s: %v", k.name, err)
			}
			id := d.Unsigned().ID().String()
			if other := roots[id]; other != "" {
				t.Errorf("an order of %s is one of %s", k.name, other)
			}
			roots[id] = k.name
			if _, err := d.Honest(t.Context()); err != nil {
				t.Errorf("%s: %v", k.name, err)
			}
		}
	}
}

// What does not add up is seen.
func TestAdds(t *testing.T) {
	each := []powerv1.Power{
		{TrainingTotal: 10, DrillingTotal: 4, Effective: 7},
		{TrainingTotal: 5, DrillingTotal: 1, Effective: 3},
	}
	all := powerv1.Power{TrainingTotal: 15, DrillingTotal: 5, Effective: 16}
	of := []drillingv1.Project{{Number: 1, Drilled: 2}, {Number: 2, Drilled: 3}}
	for name, c := range map[string]struct {
		bend func(all *powerv1.Power, of []drillingv1.Project)
		want string // of the error
	}{
		"all is well":                 {func(*powerv1.Power, []drillingv1.Project) {}, ""},
		"training of nobody":          {func(a *powerv1.Power, _ []drillingv1.Project) { a.TrainingTotal++ }, "have trained 15"},
		"drilling of nobody":          {func(a *powerv1.Power, _ []drillingv1.Project) { a.DrillingTotal-- }, "and drilled 5"},
		"power that is lost":          {func(a *powerv1.Power, _ []drillingv1.Project) { a.Effective = 9 }, "power of accounts is 10"},
		"more than is rounded down":   {func(a *powerv1.Power, _ []drillingv1.Project) { a.Effective = 17 }, "power of accounts is 10"},
		"drilling without a project":  {func(_ *powerv1.Power, p []drillingv1.Project) { p[0].Drilled-- }, "projects have drilled 4"},
		"a project that is forgotten": {func(_ *powerv1.Power, p []drillingv1.Project) { p[1].Number = 3 }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bent, projects := all, append([]drillingv1.Project{}, of...)
			c.bend(&bent, projects)
			err := adds(&bent, each, projects)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// People are bounded, for all share a machine.
func TestPeopleAreBounded(t *testing.T) {
	for _, o := range []Options{{}, {Buyers: MaxBuyers + 1}, {Buyers: 1, Guests: MaxGuests + 1}, {Buyers: 1, Guests: -1}} {
		if _, err := Run(t.Context(), nil, o); err == nil {
			t.Errorf("%+v live on no network", o)
		}
	}
}
