package dispute_test

import (
	"testing"
	"time"

	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// An hour without a block is no hour on the clock of either side. Afterwards the
// clocks go on.
func TestHaltCostsNoDisputeAClock(t *testing.T) {
	const gap = 5 * time.Second
	for side, moves := range map[string]int{"defender": 0, "challenger": 1} {
		a := newAffairIn(t, chaintest.MaxGap(gap))
		id := a.challenge()
		defender, challenger := a.sides()
		for range moves {
			a.Step(id, defender, challenger, new(worktest.Cost))
		}
		a.NextBlock(time.Hour)
		if d, _ := a.Game(id); d.Stage == "over" || d.Missed {
			t.Fatalf("%s: a halt of an hour cost it the game, or an answer: %s", side, d.Reason)
		}
		over := false
		for i := 0; i < 1_000 && !over; i++ {
			a.NextBlock(gap)
			d, _ := a.Game(id)
			over = d.Stage == "over"
		}
		if !over {
			t.Fatalf("%s: its clock never runs out", side)
		}
	}
}
