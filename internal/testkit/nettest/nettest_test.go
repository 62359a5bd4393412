package nettest

import (
	"testing"

	"github.com/tally-network/tally/node/role"
)

func TestHonestNetwork(t *testing.T) {
	n := Start(t, Options{})
	l := n.Settle(n.Post(nil))
	if l.Ledger.Slashed != 0 || l.Audits.Failed != 0 || l.Audits.Passed != l.Audits.Drawn || l.Audits.Drawn != 4 {
		t.Fatalf("%+v, slashed %d", l.Audits, l.Ledger.Slashed)
	}
	for i, u := range l.Units {
		if u.Attempt != 0 {
			t.Errorf("unit %d was given out %d times", i, u.Attempt+1)
		}
	}
	if steps := n.Count(func(e role.Event) bool { return e.Kind == role.Trained }); steps != 16 {
		t.Errorf("%d steps were trained, the order has 16", steps)
	}
}
