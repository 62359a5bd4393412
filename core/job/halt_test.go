package job

import (
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/tensor"
)

func TestHaltOnlyWhenTheLossIsNoNumber(t *testing.T) {
	for _, c := range []struct {
		loss float32
		halt bool
	}{{tensor.AsF32(0x7fc00000), true}, {tensor.AsF32(0x7f800000), true}, {2.5, false}} {
		w := newWorld(t)
		loss := tensor.Scalar(c.loss)
		k, err := canon.NewKeyed([]canon.Entry{{Key: "a", Value: canon.Sum("a")}, {Key: LossSlot, Value: loss.Root()}})
		if err != nil {
			t.Fatal(err)
		}
		w.compute(0, "p1", "")
		w.compute(1, "p2", "")
		w.pass(20)
		w.do(PostMerge{By: "v0", Root: k.Root()})
		if err := w.try(Halt{k.Open(0), loss.Bytes()}); err == nil {
			t.Fatal("another slot was taken for the loss")
		}
		if err := w.assign(2, "p1"); err != nil {
			t.Fatal(err)
		}
		if err := w.try(Halt{k.Open(1), loss.Bytes()}); (err == nil) != c.halt {
			t.Fatalf("loss %v: %v", c.loss, err)
		}
		if !c.halt {
			continue
		}
		if err := w.assign(3, "p2"); err == nil {
			t.Fatal("a halted lease gave out a unit")
		}
		w.submit(w.receipt(2, ""))
		w.attest(2)
		w.audit(2, true)
		w.pass(200)
		if w.lease.Phase != Settled || !strings.Contains(w.lease.Reason, "loss") {
			t.Fatalf("the lease is %v (%s)", w.lease.Phase, w.lease.Reason)
		}
		if w.purse["p1"] != 2*(30*1100+6*5) {
			t.Errorf("p1 got %d: the unit under way must be paid", w.purse["p1"])
		}
	}
}
