package e2e_test

import (
	"testing"

	"github.com/tally-network/tally/internal/testkit/nettest"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/events"
)

// A validator that runs its node and does nothing else holds nothing up: the
// other custodians are a quorum, and its audits are forfeited.
func TestSilentValidator(t *testing.T) {
	nettest.Rare(t)
	t.Parallel()
	n := nettest.Start(t, nettest.Options{
		Config: func(c *devnet.Config) { c.Validators = 4 },
		Spec: func(s *consume.Spec) {
			short(s)
			s.Conditions.Custodians, s.Conditions.Assurance.Audit = 3, &consume.SpecAudit{Auditors: 3, Segments: 1}
		},
		Idle: []string{"validator-3"},
	})
	l := n.Settle(n.Post(nil))
	if l.Audits.Passed == 0 || l.Audits.Failed != 0 {
		t.Errorf("audits %+v", l.Audits)
	}
	if paid(n, l.Ledger.Paid, "validator-3") != 0 || paid(n, l.Ledger.Paid, "validator-1") == 0 || paid(n, l.Ledger.Paid, "validator-2") == 0 {
		t.Errorf("paid %+v", l.Ledger.Paid)
	}
	for i, u := range l.Units {
		for _, a := range u.Audits {
			if n.Name(a.Auditor) == "validator-3" && !a.Forfeit {
				t.Errorf("unit %d: who did nothing has %+v", i, a)
			}
		}
	}
	if n.Count(func(e events.Event) bool { return e.Role == "validator-3" }) != 0 {
		t.Error("validator-3 did something")
	}
}
