package job

import (
	"strings"
	"testing"
)

// Nothing is given out before a quorum of keepers has the order's files: a consumer and
// its lead gave them to providers alone, took what these computed, and paid nothing.
func TestFilesComeFirst(t *testing.T) {
	w := beginWorld(t, testMatch())
	for _, try := range []func() error{
		func() error { return w.assign(0, "p0") },
		func() error { return w.try(Ready{Provider: "p0"}) },
	} {
		if err := try(); err == nil || !strings.Contains(err.Error(), "no unit is given out before") {
			t.Fatalf("work began without the files: %v", err)
		}
	}
	k := w.lease.Files.Keepers
	if len(k) != 3 || w.held[k[0].Account] != k[0].Bond || k[0].Bond == 0 || w.lease.Files.keeper("v0") != nil {
		t.Fatalf("drawn: %+v", k)
	}
	w.pass(10)
	if w.lease.DueSince != 0 {
		t.Fatal("the lead's clock runs before it could give anything out")
	}
	w.do(AttestFiles{k[0].Account, 1, Had})
	if err := w.assign(0, "p0"); err == nil {
		t.Fatal("one of three keepers is no quorum")
	}
	w.do(AttestFiles{k[1].Account, 1, Had})
	if w.lease.Files.Said != Had || w.lease.DueSince != w.now {
		t.Fatalf("%+v, due since %d", w.lease.Files, w.lease.DueSince)
	}
	w.do(AttestFiles{k[2].Account, 1, Missing}) // alone
	w.finish()
	// Each keeper of three units: six in all, and the files.
	if got, most := w.purse[k[2].Account], 6*w.lease.Quote.Keep+6*w.lease.Quote.Audit; got > most || w.stakeOf(k[2].Account) != stake {
		t.Errorf("who was wrong about the files earned %d, and has %d", got, w.stakeOf(k[2].Account))
	}
	if w.purse["consumer"] < w.lease.Deposit {
		t.Error("the deposit was not returned")
	}
}

// Files that cannot be had cost the consumer its deposit, and nobody else anything.
func TestMissingFilesCostTheDeposit(t *testing.T) {
	w := beginWorld(t, testMatch())
	k := w.lease.Files.Keepers
	w.do(AttestFiles{k[0].Account, 1, Had})
	w.do(AttestFiles{k[1].Account, 1, Missing})
	w.do(AttestFiles{k[2].Account, 1, Missing})
	w.pass(2)
	l := &w.lease
	each := l.Deposit / 3
	if l.Phase != Settled || !strings.Contains(l.Reason, "cannot be had") || l.Ledger.Slashed != 0 {
		t.Fatalf("the lease is %v (%s), %d slashed", l.Phase, l.Reason, l.Ledger.Slashed)
	}
	for who, want := range map[string]uint64{"v0": each, k[0].Account: 0, k[1].Account: each, k[2].Account: each, "consumer": l.Quote.Price + l.Deposit - 3*each} {
		if w.purse[who] != want || who != "consumer" && w.free[who] != stake {
			t.Errorf("%s got %d and has %d free, want %d", who, w.purse[who], w.free[who], want)
		}
	}
}

// Keepers that say nothing pay, others are drawn, and in the end the lease ends without
// blame for its lead and at no cost for its consumer.
func TestSilentFileKeepersPay(t *testing.T) {
	w := beginWorld(t, testMatch())
	l := &w.lease
	fee := l.Files.Keepers[0].Bond
	spoke := l.Files.Keepers[0].Account
	w.do(AttestFiles{spoke, 1, Had})
	w.pass(l.Files.Due - w.now)
	if l.Files.Draws != 1 {
		t.Fatal("drawn again before the time was over")
	}
	w.pass(1)
	if l.Files.Draws != 2 || l.Ledger.Slashed != 2*fee || w.stakeOf(spoke) != stake || l.Files.Keepers[0].Says != Silent {
		t.Fatalf("%+v, %d slashed, want %d", l.Files, l.Ledger.Slashed, 2*fee)
	}
	if err := w.try(AttestFiles{spoke, 1, Had}); err == nil {
		t.Fatal("a word of the first draw counts for the second")
	}
	w.pass(3 * l.Params.AnswerTime)
	if l.Phase != Settled || l.Files.Draws != 1+l.Params.MaxLate || !strings.Contains(l.Reason, "no quorum of keepers said") {
		t.Fatalf("the lease is %v (%s) after %d draws", l.Phase, l.Reason, l.Files.Draws)
	}
	if w.purse["consumer"] != l.Quote.Price+l.Deposit || w.free["v0"] != stake {
		t.Fatalf("the consumer got %d, the lead has %d", w.purse["consumer"], w.free["v0"])
	}

	w = beginWorld(t, testMatch())
	w.pass(w.lease.Files.Due - w.now + 1)
	w.sayOfFiles(Had)
	w.finish()
}

// Who keeps an order's files is paid for all their bytes, however many units there are.
func TestFileKeepersArePaidByBytes(t *testing.T) {
	m := testMatch()
	m.Order.Conditions.MaxPrice, m.Order.Problem.Files[0].Size = 1<<30, 6e9
	w := newWorldOf(t, m)
	k := w.lease.Files.Keepers[0].Account
	w.finish()
	units := uint64(0)
	for i := range w.lease.Units {
		if w.lease.Units[i].Keeps(k) {
			units += w.lease.Quote.Keep
		}
	}
	if got, least := w.purse[k]-units, 6*m.Params.KeepGB; got < least {
		t.Fatalf("a keeper of 6 GB for an hour earned %d, want at least %d", got, least)
	}
}

// Neither declining nor silence is a way for the lead around the keepers' word.
func TestDecliningBeforeTheFilesAreHadCosts(t *testing.T) {
	w := beginWorld(t, testMatch())
	w.do(Decline{"v0", "why"})
	w.pass(2)
	if fee, _ := w.lease.lateFee(); w.lease.Phase != Settled || w.free["v0"] != stake-fee || fee == 0 {
		t.Fatalf("the lease is %v, the lead has %d", w.lease.Phase, w.free["v0"])
	}
}

func TestWordsAboutFilesAreRefused(t *testing.T) {
	w := beginWorld(t, testMatch())
	k := w.lease.Files.Keepers
	w.do(AttestFiles{k[0].Account, 1, Had})
	for want, e := range map[string]AttestFiles{
		"not a keeper":     {"v0", 1, Had},
		"said already":     {k[0].Account, 1, Missing},
		"of draw 2":        {k[1].Account, 2, Had},
		"had or missing":   {k[1].Account, 1, Silent},
		"had or missing, ": {k[1].Account, 1, 9},
	} {
		if err := w.try(e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// Only who can put up the penalty is drawn; where too few can, no lease begins.
func TestFileKeepersCanBond(t *testing.T) {
	m := testMatch()
	m.Free = func(account string) uint64 {
		if account == "v1" {
			return 0
		}
		return stake
	}
	l, _, err := NewLease(m, 0)
	if err != nil || len(l.Files.Keepers) != 2 || l.Files.keeper("v1") != nil {
		t.Fatalf("drawn %+v, %v", l.Files.Keepers, err)
	}
	m.Free = func(string) uint64 { return 0 }
	if _, _, err := NewLease(m, 0); err == nil || !strings.Contains(err.Error(), "can put up") {
		t.Fatalf("a lease began without keepers: %v", err)
	}
}

// An honest lead whose providers take no unit was fined: the chain counted who could,
// not who would. Who would says so, and only then the lead pays.
func TestLeadWhoseProvidersRefuseIsNotToBlame(t *testing.T) {
	w := newWorld(t)
	w.pass(w.lease.Params.LeadTimeout)
	w.do(w.takeLead(w.lease.Leads[1].Account))
	if w.stakeOf("v0") != stake {
		t.Fatalf("the lead of providers that refuse lost %d", stake-w.stakeOf("v0"))
	}
	w.pass(w.lease.Params.LeadTimeout*3 + 10)
	if w.lease.Phase != Settled || w.lease.Ledger.Slashed != 0 {
		t.Fatalf("the lease is %v, %d slashed", w.lease.Phase, w.lease.Ledger.Slashed)
	}

	// Who comes late, or could not put up the bond, is no reason to pay.
	for name, bend := range map[string]func(w *world){
		"late":      func(w *world) { w.pass(150); w.do(Ready{Provider: "p0"}); w.pass(50) },
		"no bond":   func(w *world) { w.do(Ready{Provider: "p0"}); w.brought -= w.free["p0"]; w.free["p0"] = 0; w.pass(200) },
		"jailed":    func(w *world) { w.do(Ready{Provider: "p0"}); w.inactive = map[string]bool{"p0": true}; w.pass(200) },
		"withdrawn": func(w *world) { w.do(Ready{Provider: "p0"}); w.do(Ready{Provider: "p0", Withdraw: true}); w.pass(200) },
	} {
		w := newWorld(t)
		bend(w)
		w.do(w.takeLead(w.lease.Leads[1].Account))
		if w.stakeOf("v0") != stake {
			t.Errorf("%s: the lead lost %d", name, stake-w.stakeOf("v0"))
		}
	}
}
