package job

import (
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// smallWorld is an order of six units by the rules of a new chain. Earlier leases have filled the pool.
func smallWorld(t fataler) *world {
	return forcedWorldOf(t, func(m *Match) {
		m.Params = DefaultParams.Quick()
		m.Params.LeadTimeout, m.Params.AnswerTime, m.Params.MinBond = 200, 20, 1
	})
}

// A small order's tax is an eighth of what one forced attempt is due. Its consumer pays the rest: neither the
// provider, nor auditor and custodians have less than of another attempt, and the pool has no less than before.
func TestForcedAttemptOfASmallOrderIsPaidInFull(t *testing.T) {
	w := smallWorld(t)
	auditor := w.present(0, "p0")
	w.do(w.diligent(0, auditor))
	w.pass(20)
	if err := w.proveDraw(0, true); err != nil {
		t.Fatal(err)
	}
	all, _, err := w.lease.prizes(w.lease.Forced()[0])
	if err != nil {
		t.Fatal(err)
	}
	var due []Share // somebody may both audit and keep
	for _, s := range all {
		due = addShare(due, s)
	}
	w.settle()
	m := &w.lease.Ledger
	if !slices.Equal(m.Prizes, due) || w.pool != w.donated {
		t.Errorf("paid %v, want %v; the pool had %d and has %d", m.Prizes, due, w.donated, w.pool)
	}
	if w.purse["p0"] != 30*1000+6*10 {
		t.Errorf("p0 has %d", w.purse["p0"])
	}
}

// Orders whose units are not forced are taxed as ever, and have back what was locked for forced attempts.
func TestWhatIsLockedForForcedAttemptsComesBack(t *testing.T) {
	w := smallWorld(t)
	w.settle()
	m := &w.lease.Ledger
	var paid uint64
	for _, s := range m.Paid {
		paid += s.Amount
	}
	if want := (paid*DefaultParams.TaxBps + bps - 1) / bps; m.Tax != want || len(m.Prizes) > 0 {
		t.Errorf("taxed with %d, want %d; prizes %v", m.Tax, want, m.Prizes)
	}
	if q := &w.lease.Quote; q.Tax < 2*q.Unit || m.Refund < 2*q.Unit {
		t.Errorf("of at most %d of tax %d came back, a unit is paid %d", q.Tax, m.Refund, q.Unit)
	}
}

// What an order locks suffices for nearly all that is forced: what is missing on average is less than a provider pays
// for being late, so it does better to work. The sum is exact, over how many attempts are forced before all units are done.
func TestWhatIsLockedCoversForcedAttempts(t *testing.T) {
	p := DefaultParams
	f := big.NewRat(int64(p.ForcedBps), bps)
	plain := new(big.Rat).Sub(big.NewRat(1, 1), f)
	for units := 1; units <= 128; units++ {
		n, err := p.forcedAtMost(&Problem{Rounds: 1, Shards: units}, &Conditions{Auditors: 1})
		if err != nil || n > units {
			t.Fatalf("%d units: %d, %v", units, n, err)
		}
		odds := big.NewRat(1, 1) // that k are forced
		for range units {
			odds.Mul(odds, plain)
		}
		mean := new(big.Rat).Quo(new(big.Rat).Mul(big.NewRat(int64(units), 1), f), plain)
		missing := new(big.Rat).Sub(mean, big.NewRat(int64(n), 1)) // E(k − n) + Σ (n − k) · odds over k < n
		for k := range n {
			missing.Add(missing, new(big.Rat).Mul(odds, big.NewRat(int64(n-k), 1)))
			odds.Mul(odds, f).Mul(odds, big.NewRat(int64(units+k), int64(k+1)))
		}
		if share := missing.Quo(missing, mean); share.Cmp(big.NewRat(int64(p.LateBps), bps)) >= 0 || share.Sign() < 0 {
			t.Errorf("%d units lock money for %d forced attempts: %s of what they are due is missing", units, n, share.FloatString(4))
		}
	}
}

// One person in every role cannot choose what it pays for: it hands in nothing that is not forced, at no cost, since nobody can put
// up the bonds for that. A pool that paid what the lease lacks would pay its pay for each forced attempt that it finds. Here it
// pays that to itself.
func TestForcedAttemptsFoundForNothingEarnNothing(t *testing.T) {
	for _, forced := range []int{0, 1, 2, 3} {
		w := smallWorld(t)
		before := w.wealth() + int64(w.lease.Quote.Price+w.lease.Deposit)
		poor := map[string]uint64{}
		for attempt := 0; w.lease.Phase == Active && attempt < w.lease.Params.MaxAttempts; attempt++ {
			if attempt < forced {
				w.present(0, "p0")
				w.do(OpenDispute{ID: uint64(attempt + 1), Target: UnitTarget(0), Attempt: attempt, Challenger: "c"})
				w.pass(1)
				if err := w.proveDraw(0, true); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if err := w.assign(0, "p0"); err != nil {
				t.Fatal(err)
			}
			w.do(w.receipt(0, "garbage"))
			for _, a := range w.lease.Auditors { // it moves what it has elsewhere
				poor[a.Account], w.free[a.Account] = w.free[a.Account], 0
				w.brought -= poor[a.Account]
			}
			w.pass(101)
			for who, n := range poor {
				w.free[who] += n
				w.brought += n
			}
			if u := &w.lease.Units[0]; u.Status != Open || u.Attempt != attempt+1 {
				t.Fatalf("%+v", u)
			}
		}
		w.pass(200)
		if w.lease.Phase != Settled {
			t.Fatalf("the lease is %v", w.lease.Phase)
		}
		if got := w.wealth() - before; got > 0 || w.pool < w.donated {
			t.Errorf("%d forced attempts: gained %d, the pool had %d and has %d", forced, got, w.donated, w.pool)
		}
	}
}

// Whatever is forced, shown, late or passed unseen: no utally comes or goes (world.check), no lease costs the pool anything,
// and forced attempts share what they are due, or the most that is taxed.
func TestForcedAttemptsArePaidByTheirOwnLease(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := forcedWorldOf(r, func(m *Match) {
			m.Params = DefaultParams.Quick()
			m.Params.LeadTimeout, m.Params.AnswerTime, m.Params.MinBond = 200, 20, 1
			m.Params.TaxBps = rapid.SampledFrom([]uint64{0, 210, 2000}).Draw(r, "tax")
			m.Params.JackpotFactor = rapid.Uint64Range(0, 2).Draw(r, "jackpot")
		})
		w.pool -= w.donated // nothing is there but what the lease pays
		w.donated = 0
		var due uint64
		for range rapid.IntRange(0, 5).Draw(r, "attempts") {
			if w.lease.Phase != Active || w.lease.Units[0].Status != Open {
				break
			}
			who := rapid.SampledFrom([]string{"p0", "p1", "p2"}).Draw(r, "provider")
			if who == "p0" && rapid.Bool().Draw(r, "late") && !slices.Contains(w.lease.Barred, who) {
				if err := w.assign(0, who); err != nil {
					r.Fatal(err)
				}
				w.pass(101)
				continue
			}
			if slices.Contains(w.lease.Barred, who) {
				continue
			}
			auditor := w.present(0, who)
			switch e := w.diligent(0, auditor); rapid.IntRange(0, 2).Draw(r, "auditor") {
			case 0:
				w.do(e)
			case 1:
				e.Pass, e.Digest = true, w.lease.Order.Problem.Start
				w.do(e)
			}
			w.pass(110)
			if w.lease.Units[0].Status != Counted {
				continue
			}
			if err := w.proveDraw(0, true); err != nil {
				r.Fatal(err)
			}
		}
		at := w.lease.clone() // for bonds are taken with it
		for _, f := range at.Forced() {
			shares, _, err := at.prizes(f)
			if err != nil {
				r.Fatal(err)
			}
			for _, s := range shares {
				due += s.Amount
			}
		}
		if w.lease.Phase == Active {
			w.settle()
		}
		w.pass(200)
		m := &w.lease.Ledger
		var prizes uint64
		for _, s := range m.Prizes {
			prizes += s.Amount
		}
		if want := min(due, w.lease.Quote.Tax); prizes > want || prizes+uint64(len(m.Prizes)) < want && len(m.Prizes) > 0 {
			r.Fatalf("forced attempts were paid %d of %d, at most %d are taxed", prizes, due, w.lease.Quote.Tax)
		}
		if w.pool != m.Tax-prizes {
			r.Fatalf("the pool has %d of a tax of %d after prizes of %d", w.pool, m.Tax, prizes)
		}
	})
}
