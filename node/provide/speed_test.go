package provide

import (
	"testing"

	"github.com/tally-network/tally/core/job"
)

func TestProviderDeclinesWhatItCannotMake(t *testing.T) {
	l := &job.Lease{Params: job.Params{Allowance: 1000}}
	l.Order.Problem.Steps, l.Order.Problem.StepFLOPs, l.Order.Conditions.UnitTimeout = 10, 1e9, 3000
	for _, c := range []struct {
		speed uint64
		takes bool
	}{{0, true}, {5e9, true}, {4.9e9, false}, {1, false}} {
		if err := canMake(l, c.speed); (err == nil) != c.takes {
			t.Errorf("at %d FLOP/s: %v", c.speed, err)
		}
	}
}
