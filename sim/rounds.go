package sim

import (
	"cmp"
	"fmt"

	"github.com/tally-network/tally/core/job"
)

// Pace is how long an order of many short rounds takes, in protocol time in ms. Everybody is
// honest, and answers in the block after the one that asks.
type Pace struct {
	Rounds int   `json:"rounds"`
	Window int64 `json:"window_ms"`
	Plain  int64 `json:"without_windows_ms"`
	Waits  int64 `json:"waiting_ms"`     // each round for its window
	Ahead  int64 `json:"speculating_ms"` // speculate: all
	Forced int   `json:"forced_attempts"`
}

// Ratio is what windows cost an order whose rounds do not wait, as a share of the time that it
// must take: that of the order without windows, and one window.
func (p *Pace) Ratio() float64 {
	return float64(p.Ahead) / float64(p.Plain+p.Window)
}

// Rounds plays an order of so many rounds by the rules of a new chain, forced attempts
// among them, without windows, with each round waiting for its window, and with none waiting.
func Rounds(rounds int, window int64) (Pace, error) {
	p := Pace{Rounds: rounds, Window: window}
	for _, c := range []struct {
		took       *int64
		window     int64
		conditions job.Conditions
	}{
		{&p.Plain, 2, job.Conditions{}}, // the least that the rules allow
		{&p.Waits, window, job.Conditions{}},
		{&p.Ahead, window, job.Conditions{Speculate: job.MaxUnits}},
	} {
		b, err := pace(rounds, c.window, c.conditions)
		if err != nil {
			return p, err
		}
		*c.took = b.now
		if b.lease.Round != rounds {
			return p, fmt.Errorf("the order ended at round %d of %d: %s", b.lease.Round, rounds, cmp.Or(b.lease.Reason, "unmerged"))
		}
		p.Forced = len(b.shown)
	}
	return p, nil
}

func pace(rounds int, window int64, c job.Conditions) (*bout, error) {
	t := named()
	t.problem.Rounds = rounds
	c.Auditors, c.AuditSegments, c.UnitWindow, c.Window = 1, 1, window, window
	w, err := beginWorld(t, 1, c, job.DefaultParams.Quick())
	if err != nil {
		return nil, err
	}
	b := sit(w, bouts, 0, Strategy{}, 1)
	return b, b.play()
}
