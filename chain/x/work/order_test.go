package work_test

import (
	"testing"

	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

func begin(t testing.TB, more ...chaintest.Option) *worktest.Play {
	t.Helper()
	return worktest.Begin(t, chaintest.New(t, worktest.Network(more...)...), worktest.Order())
}

func TestOrderFromPostToSettlement(t *testing.T) {
	p := begin(t)
	s := p.Finish()
	l := p.Lease()
	if l.Phase != workv1.PHASE_SETTLED || l.Reason != "" || l.Round != 2 {
		t.Fatalf("the lease is %v at round %d: %s", l.Phase, l.Round, l.Reason)
	}
	t.Log(s.String())
}
