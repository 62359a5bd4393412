package job

import (
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/money"
)

// Nothing is given out before a quorum of custodians has the order's files: a consumer and
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
	k := w.lease.Files.Custodians
	if len(k) != 3 || w.held[k[0].Account] == 0 || w.held[k[0].Account] != w.lease.bondFor(ForFiles) || w.lease.Files.custodian("v0") != nil {
		t.Fatalf("drawn: %+v", k)
	}
	w.pass(10)
	if w.lease.DueSince != 0 {
		t.Fatal("the lead's clock runs before it could give anything out")
	}
	w.do(AttestFiles{k[0].Account, 1, Had})
	if err := w.assign(0, "p0"); err == nil {
		t.Fatal("one of three custodians is no quorum")
	}
	w.do(AttestFiles{k[1].Account, 1, Had})
	if w.lease.Files.Said != Had || w.lease.DueSince != w.now {
		t.Fatalf("%+v, due since %d", w.lease.Files, w.lease.DueSince)
	}
	w.do(AttestFiles{k[2].Account, 1, Missing}) // alone
	w.finish()
	// Each custodian of three units: six in all, and the files.
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
	k := w.lease.Files.Custodians
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

// Custodians that say nothing pay, others are drawn, and in the end the lease ends without
// blame for its lead and at no cost for its consumer.
func TestSilentFileCustodiansPay(t *testing.T) {
	w := beginWorld(t, testMatch())
	l := &w.lease
	fee := l.bondFor(ForFiles)
	spoke := l.Files.Custodians[0].Account
	w.do(AttestFiles{spoke, 1, Had})
	w.pass(l.Files.Due - w.now)
	if l.Files.Draws != 1 {
		t.Fatal("drawn again before the time was over")
	}
	w.pass(1)
	if l.Files.Draws != 2 || l.Ledger.Slashed != 2*fee || w.stakeOf(spoke) != stake || l.Files.Custodians[0].Says != Silent {
		t.Fatalf("%+v, %d slashed, want %d", l.Files, l.Ledger.Slashed, 2*fee)
	}
	if err := w.try(AttestFiles{spoke, 1, Had}); err == nil {
		t.Fatal("a word of the first draw counts for the second")
	}
	w.pass(3 * l.Params.AnswerTime)
	if l.Phase != Settled || l.Files.Draws != 1+l.Params.MaxLate || !strings.Contains(l.Reason, "no quorum of custodians said") {
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
func TestFileCustodiansArePaidByBytes(t *testing.T) {
	m := testMatch()
	m.Order.Conditions.MaxPrice, m.Order.Problem.Files[0].Size = 1<<30, 6e9
	w := newWorldOf(t, m)
	k := w.lease.Files.Custodians[0].Account
	w.finish()
	units := uint64(0)
	for i := range w.lease.Units {
		if w.lease.Units[i].Keeps(k) {
			units += w.lease.Quote.Keep
		}
	}
	if got, least := w.purse[k]-units, 6*m.Params.KeepGB; got < least {
		t.Fatalf("a custodian of 6 GB for an hour earned %d, want at least %d", got, least)
	}
}

// Neither declining nor silence is a way for the lead around the custodians' word.
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
	k := w.lease.Files.Custodians
	w.do(AttestFiles{k[0].Account, 1, Had})
	for want, e := range map[string]AttestFiles{
		"not a custodian":  {"v0", 1, Had},
		"said already":     {k[0].Account, 1, Missing},
		"of draw 2":        {k[1].Account, 2, Had},
		"had or missing":   {k[1].Account, 1, Silent},
		"had or missing, ": {k[1].Account, 1, 9},
		"or that it":       {k[1].Account, 1, Cannot + 1},
	} {
		if err := w.try(e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// Custodians that had too little memory for an honest order, or a full disk, said that its
// files are missing, and shared the consumer's deposit. Their limits are no word about the
// files: others are drawn, at nobody's cost.
func TestCustodiansThatCannot(t *testing.T) {
	m := testMatch()
	for _, v := range []string{"v4", "v5", "v6"} {
		m.Validators = append(m.Validators, party(v, Rates{}))
	}
	w := beginWorld(t, m)
	l := &w.lease
	k := slices.Clone(l.Files.Custodians)
	w.do(AttestFiles{k[0].Account, 1, Cannot})
	w.do(AttestFiles{k[1].Account, 1, Cannot})
	if l.Files.Said != Silent || l.Phase != Active {
		t.Fatalf("the files are %v, the lease is %v", l.Files.Said, l.Phase)
	}
	w.do(AttestFiles{k[2].Account, 1, Had})
	w.pass(l.Files.Due - w.now + 1)
	if l.Files.Draws != 2 || l.Ledger.Slashed != 0 || l.Files.custodian(k[0].Account) != nil || l.Files.custodian(k[1].Account) != nil {
		t.Fatalf("draw %d, %d slashed: %+v", l.Files.Draws, l.Ledger.Slashed, l.Files.Custodians)
	}
	for _, k := range k[:2] {
		if w.free[k.Account] != stake {
			t.Errorf("%s has %d free, want %d", k.Account, w.free[k.Account], stake)
		}
	}
	w.sayOfFiles(Had)
	if err := w.try(AttestFiles{l.Files.Custodians[2].Account, 2, Cannot}); err == nil {
		t.Error("a custodian's limits were heard after a quorum had spoken")
	}
	w.finish()

	// Where nobody can, the lease ends: nobody pays, and the consumer has everything back.
	w = beginWorld(t, m)
	l = &w.lease
	begun := w.now
	for draw := 1; l.Phase == Active; draw++ {
		for _, k := range slices.Clone(l.Files.Custodians) {
			w.do(AttestFiles{k.Account, draw, Cannot})
		}
		w.pass(1)
	}
	w.pass(2)
	if l.Phase != Settled || l.Ledger.Slashed != 0 || w.purse["consumer"] != l.Quote.Price+l.Deposit || w.now-begun > 10 {
		t.Fatalf("the lease is %v after %d ms (%s), %d slashed, the consumer got %d", l.Phase, w.now-begun, l.Reason, l.Ledger.Slashed, w.purse["consumer"])
	}
}

// Only who can put up the penalty is drawn; where too few can, no lease begins. Where they cannot any
// more once the draw is made, it ends, and nobody has lost anything.
func TestFileCustodiansCanBond(t *testing.T) {
	m := testMatch()
	m.Affords = func(account string, bond uint64) bool { return account != "v1" && bond <= stake }
	begun, _, err := NewLease(m, 1)
	if err != nil {
		t.Fatal(err)
	}
	l, _, err := Apply(begun, Tick{Seed: canon.Sum("seed"), Affords: m.Affords}, 2)
	if err != nil || len(l.Files.Custodians) != 2 || l.Files.custodian("v1") != nil {
		t.Fatalf("drawn %+v, %v", l.Files.Custodians, err)
	}
	m.Affords = upTo(0)
	l, _, err = Apply(begun, Tick{Seed: canon.Sum("seed"), Affords: m.Affords}, 2)
	if err != nil || l.Phase == Active || !strings.Contains(l.Reason, "can put up") || l.Ledger.Slashed != 0 {
		t.Fatalf("nobody can put up a bond any more: the lease is %v (%s), %d slashed, %v", l.Phase, l.Reason, l.Ledger.Slashed, err)
	}
	if _, _, err := NewLease(m, 0); err == nil || !strings.Contains(err.Error(), "can put up") {
		t.Fatalf("a lease began without custodians: %v", err)
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

// Who says that it has the order's files can be asked for a tile of the state that they
// start from, or of the records: it answers for that word as for any other.
func TestFileCustodianShowsWhatItHas(t *testing.T) {
	seen := map[int]bool{}
	for i := range 12 {
		k := newKept(t)
		who := k.lease.Files.Custodians[0].Account
		k.refused("not under way", Ask{By: asker, Custodian: who, Unit: 0, Attempt: 1})
		k.refused("unit -1", Ask{By: asker, Custodian: who, Unit: OfFiles, Attempt: 1})
		k.refused("no attestation of p0 to the order's files", Ask{By: asker, Custodian: "p0", Unit: OfFiles, Attempt: 0})
		k.refused("cannot ask itself", Ask{By: who, Custodian: who, Unit: OfFiles, Attempt: 0})
		k.pass(int64(i))
		k.do(Ask{By: asker, Custodian: who, Unit: OfFiles, Attempt: 0})
		k.refused("already", Ask{By: "another", Custodian: who, Unit: OfFiles, Attempt: 0})
		k.pass(1)
		q, drawn := k.lease.Sample(k.lease.Question(who, OfFiles))
		if !drawn || q.State > 0 {
			t.Fatalf("asked for %+v", q)
		}
		seen[q.State] = true
		a := q.ShowTensor(k.records)
		if q.State == 0 {
			a, _ = q.ShowState(k.states[0])
		}
		wrong := a
		wrong.Type++
		if k.try(Answer{By: who, Unit: OfFiles, Shown: wrong}) == nil {
			t.Fatal("a wrong answer was taken")
		}
		k.do(Answer{By: who, Unit: OfFiles, Shown: a})
		if k.purse[who] != k.lease.Params.AskFee || len(k.lease.Questions()) != 0 {
			t.Fatalf("the custodian has %d for its answer", k.purse[who])
		}
	}
	if len(seen) != 2 {
		t.Errorf("only %v is asked for", seen)
	}
}

// A custodian of the files that cannot show them loses its bond. Before anything is given out
// its word counts no more, and another is drawn; later the work goes on without it.
func TestFileCustodianThatHasNothing(t *testing.T) {
	m := testMatch()
	m.Params.AnswerTime = 5
	m.Validators = append(m.Validators, party("v4", Rates{}))
	for _, begun := range []bool{false, true} {
		w := newWorldOf(t, m)
		who, bond := w.lease.Files.Custodians[0].Account, w.lease.bondFor(ForFiles)
		if begun {
			w.compute(0, "p0", "")
			w.pass(20)
		}
		w.do(Ask{By: asker, Custodian: who, Unit: OfFiles, Attempt: 0})
		w.pass(1)
		w.now = w.lease.Question(who, OfFiles).Due + 1
		before := w.stakeOf(who)
		w.tick()
		l := &w.lease
		reward, _ := money.Scale(bond, l.Params.RewardBps, bps)
		if before-w.stakeOf(who) != bond || w.purse[asker] != stake+reward || !w.jailed[who] || l.Files.custodian(who) != nil || l.trusts(who) {
			t.Fatalf("the custodian lost %d of %d, the asker has %d; custodians %+v", before-w.stakeOf(who), bond, w.purse[asker], l.Files.Custodians)
		}
		if begun {
			if l.Files.Said != Had {
				t.Fatalf("the files are %v, and units were given out", l.Files.Said)
			}
			w.finish()
			continue
		}
		if err := w.assign(0, "p0"); err == nil || l.Files.Said != Silent || l.DueSince != 0 {
			t.Fatalf("by the word of a convicted custodian the files are %v, due since %d", l.Files.Said, l.DueSince)
		}
		w.pass(l.Files.Due - w.now + 1) // the third says nothing
		if l.Files.Draws != 2 || l.Files.custodian(who) != nil {
			t.Fatalf("%+v", l.Files)
		}
		w.sayOfFiles(Had)
		w.finish()
	}
}

// A custodian that is late with two answers at once is convicted about each that is left.
func TestLateAboutUnitAndFiles(t *testing.T) {
	for _, first := range []int{0, OfFiles} {
		k := newKept(t)
		k.lease.Params.AnswerTime = 5
		k.attestAll(0)
		who := ""
		for _, a := range k.lease.Units[0].Attested {
			if f := k.lease.Files.custodian(a.Custodian); f != nil && f.Says == Had {
				who = a.Custodian
			}
		}
		if who == "" {
			t.Fatal("no custodian has both")
		}
		bond := k.lease.keepBond()
		k.do(Ask{By: asker, Custodian: who, Unit: first, Attempt: 0})
		k.do(Ask{By: asker, Custodian: who, Unit: OfFiles - first, Attempt: 0})
		k.pass(7)
		if lost := stake - k.stakeOf(who); len(k.lease.Questions()) != 0 || lost < bond || k.lease.Files.custodian(who) != nil {
			t.Fatalf("it lost %d, of %d for the unit alone; open are %v", lost, bond, k.lease.Questions())
		}
	}
}

// Questions about the files of custodians that are let go of are taken back.
func TestQuestionsEndWithTheDraw(t *testing.T) {
	w := beginWorld(t, testMatch())
	who := w.lease.Files.Custodians[0].Account
	w.do(AttestFiles{who, 1, Had})
	w.pass(w.lease.Files.Due - w.now)
	w.do(Ask{By: asker, Custodian: who, Unit: OfFiles, Attempt: 0})
	w.pass(1)
	if w.lease.Files.Draws != 2 || len(w.lease.Questions()) != 0 || w.purse[asker] != stake || w.stakeOf(who) != stake {
		t.Fatalf("%+v, %v; the asker has %d", w.lease.Files, w.lease.Questions(), w.purse[asker])
	}
}

// Who cannot keep an order is drawn for it no more, and still computes: a quorum has the files.
func TestWhoCannotKeepStillComputes(t *testing.T) {
	for nonce := uint64(1); ; nonce++ {
		m := manyRolesMatch()
		m.Order.Nonce, m.Providers = nonce, m.Providers[2:] // v1 alone
		m.Validators = append(m.Validators, party("v5", Rates{}))
		m.Order.Conditions.MinProviders = 1
		w := beginWorld(t, m)
		if w.lease.Files.custodian("v1") == nil {
			continue
		}
		w.do(AttestFiles{By: "v1", Draw: 1, Says: Cannot})
		for _, k := range w.lease.Files.Custodians {
			if k.Says == Silent {
				w.do(AttestFiles{By: k.Account, Draw: 1, Says: Had})
			}
		}
		w.pass(1)
		if w.lease.Phase != Active || find(w.lease.referees(), "v1") != nil {
			t.Fatalf("the lease is %v: %s", w.lease.Phase, w.lease.Reason)
		}
		if err := w.assign(0, "v1"); err != nil {
			t.Fatal(err)
		}
		return
	}
}
