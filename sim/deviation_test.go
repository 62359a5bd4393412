package sim

import (
	"math"
	"testing"

	"github.com/tally-network/tally/core/job"
)

// Every action but those that the protocol asks for is a deviation, and all of them can be played.
func TestDeviationsAreAllActions(t *testing.T) {
	want := 0
	for c := range numChoices {
		if c != chooseAudits {
			want += len(choices[c].actions) - 1
		}
	}
	names := map[string]bool{}
	for _, d := range Deviations() {
		names[d.String()] = true
		if _, err := d.Play(job.DefaultParams.Quick(), 1, 1); err != nil {
			t.Errorf("%v: %v", d, err)
		}
	}
	if len(names) != want {
		t.Errorf("%d deviations, want %d: %v", len(names), want, names)
	}
}

// Forced attempts are as common as an economy has them, and weights make up for it.
func TestLikelihood(t *testing.T) {
	e := economy{rules: job.DefaultParams.Quick(), forced: 1000}
	const orders = 2000
	forced, units, weight := 0, 0, 0.0
	for chance := range uint64(orders) {
		b, err := newBout(e, 0, Strategy{}, chance)
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.lease.Units {
			units++
			if _, f := b.forcedDraw(i, 0); f {
				forced++
			}
		}
		weight += likelihood(b) / orders
	}
	if share := float64(forced) / float64(units); math.Abs(share-0.1) > 0.01 || math.Abs(weight-1) > 0.05 {
		t.Errorf("%.3f of the attempts are forced, the mean weight is %.3f", share, weight)
	}
}

// An auditor that looks at nothing, and keeps what it attests to, is not asked as if it kept nothing. Where nothing is forced it
// saves its work.
func TestWhoLooksAtNothingMayKeep(t *testing.T) {
	rules := job.DefaultParams.Quick()
	rules.ForcedBps = 0
	d := Deviation{who: 1 << Auditor}
	d.strategy[chooseVerdict] = passesUnseen
	for seed := range uint64(30) {
		if g, err := d.Play(rules, 2, seed); err != nil || g.Gain < 0 {
			t.Errorf("seed %d: %+v, %v", seed, g, err)
		}
	}
}

// A lead that keeps providers waiting pays for it.
func TestIdleLeadIsFined(t *testing.T) {
	d := Deviation{who: 1 << Lead}
	d.strategy[chooseLeading] = idles
	if g, err := d.Play(job.DefaultParams.Quick(), 2, 1); err != nil || g.Gain >= 0 {
		t.Errorf("%+v, %v", g, err)
	}
}
