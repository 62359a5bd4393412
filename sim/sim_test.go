package sim

import (
	"context"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// Every attack, played a few times under every policy, is as the protocol
// promises. tally sim adversaries plays more.
func TestAdversaries(t *testing.T) {
	rows, err := Adversaries(context.Background(), Options{Runs: 30, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		// A bond is many times a unit's pay, so that thirty orders with a chance
		// of one in ten to meet an audit may still end well for the attacker.
		if rare := 1-r.Predicted < 0.2; rare && r.ExpectedProfit < r.UnitPay {
			r.ExpectedProfit = -1
		}
		if err := r.Check(); err != nil {
			t.Error(err)
		}
	}
}

func TestSameSeedSameRows(t *testing.T) {
	play := func(only string) []Row {
		rows, err := Adversaries(context.Background(), Options{Runs: 5, Seed: 7, Only: regexp.MustCompile(only)})
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	some, more := play("^garbage$"), play("^garbage$|skipped")
	if len(some) == 0 || !reflect.DeepEqual(some, more[:len(some)]) {
		t.Error("a row depends on more than its seed")
	}
}

// Without attacks an order ends in the state that honest steps lead to, nobody
// is slashed, and everybody who works earns more than it costs.
func TestHonestOrder(t *testing.T) {
	w, err := newTraining()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range assurances[:3] {
		s, err := newScene(w, a, (&experiment{}).source(3))
		if err != nil {
			t.Fatal(err)
		}
		x, err := s.outcome()
		if err != nil || x.wrong || x.slashed != 0 || s.games != 0 {
			t.Errorf("%s: %+v, %d disputes, %v", a.name, x, s.games, err)
		}
		for _, who := range append([]string{lead}, cheater, validator(0)) {
			if s.profit(who) < 0 {
				t.Errorf("%s: honest %s loses %v utally", a.name, who, -s.profit(who))
			}
		}
	}
}

// A forgery is one: it shows states that steps do not lead to, in as many
// segments as it should.
func TestForgeriesForge(t *testing.T) {
	w, err := newTraining()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"wrong arithmetic by one ulp": 1, "garbage": 1, "skipped steps": 1, "top-q blindfold": segments - 1}
	for _, f := range forgeries {
		n, err := f.forged(w)
		if err != nil {
			t.Fatal(err)
		}
		if want[f.name] == 0 {
			want[f.name] = segments
		}
		if n != want[f.name] {
			t.Errorf("%s forges %d segments, want %d", f.name, n, want[f.name])
		}
	}
}

func TestHypergeometric(t *testing.T) {
	sum := 0.0
	for j := range 4 {
		sum += hypergeometric(12, 4, 3, j)
	}
	if sum < 1-1e-12 || sum > 1+1e-12 || hypergeometric(20, 6, 3, 3) < 0.0175 || hypergeometric(20, 6, 3, 3) > 0.0176 {
		t.Errorf("sum %v, three of six bad among twenty %v", sum, hypergeometric(20, 6, 3, 3))
	}
}

// The page about attacks speaks of every row.
func TestAttacksAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/spec/attacks.md")
	if err != nil {
		t.Fatal(err)
	}
	w, err := newTraining()
	if err != nil {
		t.Fatal(err)
	}
	all, err := catalogue(w)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		name, _, numbered := strings.Cut(e.Name, " from move ")
		if numbered {
			name += " from move …"
		}
		if !strings.Contains(string(page), "*"+name+"*") {
			t.Errorf("docs/spec/attacks.md does not speak of *%s*", name)
		}
	}
}
