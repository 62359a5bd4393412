package work_test

import (
	"strings"
	"testing"

	errorsmod "cosmossdk.io/errors"

	"github.com/tally-network/tally/chain/x/work"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// An order that names another cost than its program has is stopped by one message: who shows it
// has a part of the deposit, and nobody is credited with power.
func TestInflatedCostIsExposed(t *testing.T) {
	slots := []graph.Slot{{Name: "x", Type: tensor.Float32}}
	program := &graph.Program{Groups: 1, Slots: slots, Outputs: []graph.Ref{{Kind: graph.RefSlot}}}
	c := program.CommitAs(nil, graph.Cost{FLOPs: 7, Bytes: 9})
	o := worktest.Order()
	o.Problem.Step = c.Root()
	p := worktest.Begin(t, chaintest.New(t, worktest.Network()...), o)
	p.Compute(0, "p0")
	shown := canon.Marshal(c.Open())
	m := &workv1.MsgExposeCost{Sender: worktest.Challenger.String(), Order: p.ID.String(), Shown: shown}
	for _, bad := range []struct {
		err   *errorsmod.Error
		merge bool
		shown []byte
	}{{work.ErrMalformed, false, shown[1:]}, {work.ErrMalformed, false, make([]byte, graph.MaxRefutation+1)}, {work.ErrRefused, true, shown}} {
		p.Refuse(bad.err, worktest.Challenger, &workv1.MsgExposeCost{Sender: m.Sender, Order: m.Order, Merge: bad.merge, Shown: bad.shown})
	}
	p.Deliver(worktest.Challenger, m)
	p.Refuse(work.ErrRefused, worktest.Challenger, m)
	if l := p.Lease(); l.Phase != workv1.PHASE_STOPPING && l.Phase != workv1.PHASE_CLOSING || l.Ledger.Refuter != m.Sender || !strings.Contains(l.Reason, "a step takes 7 FLOP and 9 bytes") {
		t.Fatalf("the lease is %v: %s, shown by %s", l.Phase, l.Reason, l.Ledger.Refuter)
	}
}
