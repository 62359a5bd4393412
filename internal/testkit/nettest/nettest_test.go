package nettest

import (
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/node/events"
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
	if steps := n.Count(func(e events.Event) bool { return e.Kind == events.Computed }); steps != 16 {
		t.Errorf("%d steps were trained, the order has 16", steps)
	}

	// What is wrong is seen.
	expect := func(words string, l *job.Lease) {
		t.Helper()
		if err := n.Check(l); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("want an error about %s: %v", words, err)
		}
	}
	other := *l
	other.Merges = slices.Clone(l.Merges)
	other.Merges[1].Root[0] ^= 1
	expect("final root", &other)
	other = *l
	other.Ledger.Refund++
	expect("price", &other)
	other = *l
	other.Phase = job.Closing
	expect("closing", &other)
	n.Moved("provider-0", 1)
	expect("provider-0 has", l)
	n.Moved("provider-0", -1)
	if err := n.Check(l); err != nil {
		t.Error(err)
	}
}
