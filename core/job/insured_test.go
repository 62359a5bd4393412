package job

import (
	"testing"

	"github.com/tally-network/tally/core/dispute"
)

// A consumer who paid for a part of a result, because providers failed, has a part of
// that back out of what their slashes left to the insurance fund, which never paid.
func TestConsumerOfAFailedLeaseIsInsured(t *testing.T) {
	w := newWorld(t)
	w.finishRound()
	for id, p := range []string{"p0", "p1", "p2"} {
		w.compute(2, p, "lie")
		if err := w.challenge(uint64(id+1), UnitTarget(2), "c"); err != nil {
			t.Fatal(err)
		}
		w.do(CloseDispute{ID: uint64(id + 1), Loser: dispute.Defender})
	}
	w.pass(200)
	m := &w.lease.Ledger
	spent := w.lease.Quote.Price + w.lease.Deposit - m.Refund
	var fund uint64
	for _, s := range m.SlashPaid {
		if s.Account == Insurance {
			fund = s.Amount
		}
	}
	if w.lease.Phase != Settled || w.lease.Reason == "" || spent == 0 || fund == 0 {
		t.Fatalf("the lease is %v (%s), the consumer spent %d, the fund got %d", w.lease.Phase, w.lease.Reason, spent, fund)
	}
	if want := min(spent, fund/2); m.Insured != want || w.purse["consumer"] != m.Refund+want {
		t.Errorf("the fund paid %d, want %d; the consumer has %d", m.Insured, want, w.purse["consumer"])
	}
	if w.purse[Insurance] != fund-m.Insured {
		t.Errorf("the fund has %d of %d", w.purse[Insurance], fund)
	}
}

// Nothing is insured that did not fail, and nothing beyond the slashes of the lease.
func TestNothingElseIsInsured(t *testing.T) {
	for _, c := range []struct {
		name        string
		reason      string
		fund, spent uint64
		want        uint64
	}{
		{"completed", "", 100, 100, 0},
		{"failed", "no provider", 100, 30, 30},
		{"failed at the cost of more than the fund's half", "no provider", 100, 80, 50},
		{"ended by its consumer", StopReason, 100, 30, 0},
		{"abandoned, nobody slashed", "no lead", 0, 80, 0},
	} {
		l := Lease{Reason: c.reason, Ledger: Ledger{SlashPaid: []Share{{Insurance, c.fund}}}}
		if got := l.insured(c.spent); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
