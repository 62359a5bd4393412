package dispute_test

import (
	"testing"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/dispute"
	"github.com/tally-network/tally/core/canon"
	game "github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// A merge is one step, so an opening that names a segment of it is refused. It was
// taken once, and no lease with such a dispute could be read again.
func TestOpeningOfAMergeIsEmpty(t *testing.T) {
	a := newAffair(t)
	a.Computer = a.honest
	a.Compute(1, "p1")
	a.NextBlock(worktest.UnitWindow)
	a.Deliver(a.Lead(), a.MergeMsg())
	for name, o := range map[string]game.Opening{
		"far": {Segment: 257}, "near": {Segment: 1}, "with a root": {From: canon.Hash{1}}, "with a path": {ToPath: []canon.Hash{{1}}},
	} {
		m := &disputev1.MsgOpen{Challenger: worktest.Challenger.String(), Order: a.ID.String(), Target: merge(0), Opening: canon.Marshal(&o)}
		if log := a.Refuse(dispute.ErrOpening, worktest.Challenger, m); log == "" {
			t.Errorf("%s: taken", name)
		}
	}
	if n := len(a.Lease().Disputes); n != 0 {
		t.Fatalf("%d disputes are open", n)
	}
	a.Deliver(worktest.Challenger, &disputev1.MsgOpen{
		Challenger: worktest.Challenger.String(), Order: a.ID.String(), Target: merge(0), Opening: canon.Marshal(&game.Opening{}),
	})
	if n := len(a.Lease().Disputes); n != 1 {
		t.Fatalf("%d disputes are open", n)
	}
}

// A target that names two things at once was a second name that no rule knew: its
// dispute could be neither defended nor closed. Bytes that say both name one.
func TestTargetNamesOneThing(t *testing.T) {
	auditor := worktest.Challenger.String()
	var both []byte
	for _, m := range []workv1.Target{merge(0), verdict(auditor)} {
		b, err := m.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, b...)
	}
	var m workv1.Target
	if err := m.Unmarshal(both); err != nil {
		t.Fatal(err)
	}
	if got, err := wire.TargetFromProto(m); err != nil || got != job.VerdictTarget(0, auditor) {
		t.Fatalf("%v, %v", got, err)
	}
	for _, want := range []job.Target{job.UnitTarget(3), job.MergeTarget(3), job.VerdictTarget(3, auditor), job.TruthTarget(3, 0), job.TruthTarget(3, 255)} {
		if got, err := wire.TargetFromProto(wire.TargetToProto(want)); err != nil || got != want {
			t.Errorf("%v came back as %v, %v", want, got, err)
		}
	}
	for _, bad := range []job.Target{{}, job.UnitTarget(job.MaxUnits), job.MergeTarget(-1), job.VerdictTarget(0, ""), job.TruthTarget(0, job.MaxSegments)} {
		if got, err := wire.TargetFromProto(wire.TargetToProto(bad)); err == nil {
			t.Errorf("%v was taken as %v", bad, got)
		}
	}
}
