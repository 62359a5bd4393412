package watch

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/node/replay"
)

func TestOnlyALieIsExposed(t *testing.T) {
	lie := &replay.CostError{Merge: true, Shown: &graph.Refutation{Header: graph.Header{Groups: 3}}}
	wrapped := fmt.Errorf("order: %w", &replay.UnfitError{Err: lie})
	for name, x := range map[string]struct {
		lease job.Lease
		err   error
		sent  bool
	}{
		"a lie":               {job.Lease{Phase: job.Active}, wrapped, true},
		"in the last window":  {job.Lease{Phase: job.Closing}, wrapped, true},
		"all is well":         {job.Lease{Phase: job.Active}, nil, false},
		"files of another":    {job.Lease{Phase: job.Active}, &replay.UnfitError{Err: errors.New("the step program is another")}, false},
		"files that are late": {job.Lease{Phase: job.Active}, errors.New("nobody has them"), false},
		"shown already":       {job.Lease{Phase: job.Stopping, Ledger: job.Ledger{Refuter: "other"}}, wrapped, false},
		"missing anyway":      {job.Lease{Phase: job.Stopping, Files: job.Files{Said: job.Missing}}, wrapped, false},
		"settled":             {job.Lease{Phase: job.Settled}, wrapped, false},
	} {
		m := exposing(&x.lease, "me", x.err)
		if (m != nil) != x.sent {
			t.Errorf("%s: %v", name, m)
			continue
		}
		if m == nil {
			continue
		}
		var shown graph.Refutation
		if err := canon.Unmarshal(m.Shown, &shown); err != nil || shown.Header.Groups != 3 || !m.Merge || m.Sender != "me" || m.Order != x.lease.Order.ID().String() {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}
