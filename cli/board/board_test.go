package board

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/node/demo"
)

func TestBoardTellsWhatTheDemoDoes(t *testing.T) {
	s := &sight{begun: time.Now(), width: 20}
	s.set(demo.Board{
		Stage: "training", Rounds: 8, Round: 2, Units: []job.Status{job.Open, job.Assigned, job.Received, job.Counted, job.Accepted},
		Loss: []float32{4.5, 3.125}, Audits: [2]int{5, 1}, Replayed: 7, Lines: []string{"a line that is far longer than the terminal"},
		Workers: []demo.Worker{{Name: "provider-0", Unit: 4, Step: 8, Steps: 16, Loss: 3}, {Name: "provider-1", Unit: -1}, {Name: "provider-2", Out: true}},
		Dispute: &demo.DisputeBoard{Order: "batch", Unit: 3, Defender: "provider-2", StepLo: 4, StepHi: 8, Node: -1, Over: true, Loser: "provider-2"},
	})
	got := ansi.Strip(s.View())
	for _, want := range []string{
		"round 3 of 8", "□◇▫▪■", "3.125 nats", "████████░░░░░░░░ unit 4", "waits for a unit", "convicted and slashed",
		"5 passed, 1 failed", "re-executed 7", "unit 3 of the batch by provider-2", "steps 4–8", "provider-2 lost", "a line that is far \n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the board does not say %q:\n%s", want, got)
		}
	}
}
