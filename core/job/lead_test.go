package job

import (
	"slices"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
)

// What a lead cannot do, because the chain does it or the provider itself: the
// table of docs/spec/lease.md.

// A lead cannot withhold a receipt: the provider posts it, custodians and auditors
// read it from the chain, and if the lead then does nothing, the next in line
// merges it. The provider is paid, the idle lead pays.
func TestLeadCannotWithholdReceipts(t *testing.T) {
	w := newWorld(t)
	w.compute(0, "p1", "")
	w.compute(1, "p2", "")
	next := w.lease.Leads[1].Account
	w.pass(20 + w.lease.Params.LeadTimeout)
	for _, u := range w.lease.Units[:2] {
		if u.Status != Accepted {
			t.Fatalf("without the lead's help a unit is %v", u.Status)
		}
	}
	w.do(TakeLead{By: next})
	w.finish()
	if w.purse["p1"] == 0 || w.stakeOf("v0") == stake {
		t.Fatalf("p1 earned %d, the idle lead lost %d", w.purse["p1"], stake-w.stakeOf("v0"))
	}
}

// A lead cannot set a deadline: the chain counts the order's own from the
// assignment.
func TestLeadCannotSetDeadlines(t *testing.T) {
	for late := range int64(2) {
		w := newWorld(t)
		w.pass(17)
		begun := w.now
		if err := w.assign(0, "p0"); err != nil {
			t.Fatal(err)
		}
		if due := w.lease.Units[0].Due; due != begun+w.lease.Order.Conditions.UnitTimeout {
			t.Fatalf("due at %d", due-begun)
		}
		receipt := w.receipt(0, "")
		w.now = w.lease.Units[0].Due + late
		if err := w.try(receipt); (err == nil) != (late == 0) {
			t.Fatalf("%d ms late: %v", late, err)
		}
	}
}

// A lead cannot leave a provider out of a merge, or choose what is merged: the
// inputs of a merge are the accepted units of the round, and the chain lists them.
func TestLeadCannotLeaveAProviderOut(t *testing.T) {
	w := newWorld(t)
	w.compute(0, "p1", "")
	w.compute(1, "p2", "")
	ends := w.lease.Ends(0)
	if err := w.try(PostMerge{By: "v0", Root: canon.Sum("one unit alone")}); err == nil {
		t.Fatal("merged before every unit was accepted")
	}
	w.pass(20)
	w.do(PostMerge{By: "v0", Root: canon.Sum("one unit alone")})
	s, err := w.lease.Subject(MergeTarget(0), 0)
	if err != nil || !slices.Equal(s.Claim.Inputs, ends) {
		t.Fatalf("the merge claims to be of %v, %v", s.Claim.Inputs, err)
	}
	// So a merge without p2's work is a wrong merge, and costs the lead its office.
}

// A lead that gives units to whoever takes them keeps its place, though one provider of
// the lease never says a word and a round lasts for many of the lead's times. It was
// displaced, and in the end the lease stopped with all units done and none merged.
func TestLeadThatWorksIsNotDisplaced(t *testing.T) {
	m := testMatch()
	m.Order.Problem.Rounds, m.Order.Problem.Shards, m.Order.Conditions.MaxPrice = 1, 24, 1<<40
	w := newWorldOf(t, m)
	done := 0
	for done < m.Order.Problem.Shards {
		for _, p := range []string{"p0", "p1"} { // p2 is switched off
			for i := range w.lease.Units {
				if w.lease.Units[i].Status == Open && w.lease.openUnits(p) < w.lease.Params.MaxOpen {
					if err := w.assign(i, p); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		w.pass(80)
		for i := range w.lease.Units {
			if w.lease.Units[i].Status == Assigned {
				w.submit(w.receipt(i, ""))
				w.attest(i)
				w.audit(i, true)
				done++
			}
		}
		for _, d := range w.lease.Leads {
			if w.lease.MayTakeLead(d.Account, w.now) || w.try(w.takeLead(d.Account)) == nil {
				t.Fatalf("%s may displace a lead that works, after %d units", d.Account, done)
			}
		}
	}
	w.pass(20)
	if w.lease.Phase != Active || w.lease.Reason != "" || w.lease.LeadIndex != 0 {
		t.Fatalf("the lease is %v: %s; %s leads", w.lease.Phase, w.lease.Reason, w.lease.Lead())
	}
	w.finish()
}

// A lead that keeps a provider waiting while others work is displaced, once that has said
// that it is ready for as long as a lead may be idle; not for one that could not take a
// unit. The next in line has as much time.
func TestLeadThatPassesByAReadyProvider(t *testing.T) {
	for _, poor := range []bool{false, true} {
		w := newWorld(t)
		w.lease.Order.Conditions.UnitTimeout = 10_000
		if err := w.assign(0, "p0"); err != nil {
			t.Fatal(err)
		}
		w.do(Ready{Provider: "p1"})
		w.pass(w.lease.Params.LeadTimeout - 1)
		first, second := w.lease.Leads[1].Account, w.lease.Leads[2].Account
		if err := w.try(w.takeLead(first)); err == nil {
			t.Fatal("taken over too early")
		}
		w.pass(1)
		take := w.takeLead(first)
		if poor {
			take.Waiting = []Standing{{Provider: "p1"}}
		}
		if err := w.try(take); (err == nil) == poor {
			t.Fatalf("a provider that waits can take a unit: %v; taking over: %v", !poor, err)
		}
		if poor {
			continue
		}
		if w.lease.Lead() != first || w.stakeOf("v0") == stake {
			t.Fatalf("%s leads; the idle lead lost %d", w.lease.Lead(), stake-w.stakeOf("v0"))
		}
		if err := w.try(w.takeLead(second)); err == nil {
			t.Fatal("the new lead had no time")
		}
		w.pass(w.lease.Params.LeadTimeout)
		w.do(w.takeLead(second))
	}
}

// Whoever put up stake for the moment in which the lead is asked has it displaced, and not fined: it
// could not be served before. What a balance holds comes and goes without a trace, and counts as little.
func TestLeadPaysForThoseWhomItCouldServe(t *testing.T) {
	for name, x := range map[string]struct {
		bend  func(s *Standing, now int64)
		fined bool
	}{
		"it could be served all the while": {func(*Standing, int64) {}, true},
		"since long":                       {func(s *Standing, now int64) { s.Since = now - 2*DefaultParams.LeadTimeout }, true},
		"out of its balance":               {func(s *Standing, _ int64) { s.Staked = 0 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.lease.Params.LeadTimeout = DefaultParams.LeadTimeout
			w.lease.Order.Conditions.UnitTimeout = 10 * DefaultParams.LeadTimeout
			if err := w.assign(0, "p0"); err != nil {
				t.Fatal(err)
			}
			w.do(Ready{Provider: "p1"})
			w.pass(w.lease.Params.LeadTimeout)
			take := w.takeLead(w.lease.Leads[1].Account)
			x.bend(&take.Waiting[0], w.now)
			w.do(take)
			if fined := w.stakeOf("v0") < stake; fined != x.fined {
				t.Errorf("the lead was fined: %v", fined)
			}
		})
	}
}

// A lead has its time from when a unit is open, whoever has been ready before: at the merge that opens a
// round, and where an attempt runs out. Nobody takes over for stake that came just now.
func TestLeadHasTimeOnceAUnitOpens(t *testing.T) {
	for name, open := range map[string]func(w *world){
		"a new round": func(w *world) {
			for i := range 2 {
				w.submit(w.receipt(i, ""))
				w.attest(i)
				w.audit(i, true)
			}
			for !w.lease.AwaitsMerge() {
				w.pass(1)
			}
			w.do(w.merge())
		},
		"an attempt runs out": func(w *world) {
			for w.lease.Count.Status[Open] == 0 {
				w.pass(1)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.lease.Params.LeadTimeout, w.lease.Order.Conditions.UnitTimeout = 40, 200
			for i, p := range []string{"p0", "p2"} {
				if err := w.assign(i, p); err != nil {
					t.Fatal(err)
				}
			}
			w.do(Ready{Provider: "p1"})
			w.pass(60)
			open(w)
			next := w.lease.Leads[1].Account
			if err := w.try(w.takeLead(next)); err == nil {
				t.Fatal("the lead had no time")
			}
			w.pass(40)
			late := w.takeLead(next)
			late.Waiting[0].Since = w.now - 39
			if !w.lease.idle(1, w.now) && w.try(late) == nil {
				t.Fatal("taken over for stake that came later")
			}
			w.do(w.takeLead(next))
		})
	}
}

// A lead merges into a state that nobody has, and gives out the next round. Whoever disputes the merge keeps
// those from being late who cannot compute: replicas are drawn, and others may have accepted already.
func TestNobodyIsLateWhileTheMergeIsDisputed(t *testing.T) {
	for name, c := range map[string]struct {
		disputed bool
		loser    dispute.Side
		late     bool
	}{
		"the merge is refuted": {true, dispute.Defender, false},
		"the merge was right":  {true, dispute.Challenger, true},
		"nobody disputes it":   {false, 0, true},
	} {
		plain, replicated := newWorld(t), replicatedWorld(t, 3, 4)
		plain.finishRound()
		if err := plain.assign(2, "p0"); err != nil {
			t.Fatal(err)
		}
		replicated.agreeOnRound("")
		replicated.giveOut(2)
		for _, w := range []*world{plain, replicated} {
			l := &w.lease
			if c.disputed {
				w.next++
				if err := w.challenge(w.next, MergeTarget(0), "c"); err != nil {
					t.Fatal(err)
				}
				w.pass(3 * l.Order.Conditions.UnitTimeout)
				if len(l.Faults) > 0 {
					t.Errorf("%s: late while it is disputed: %v", name, l.Faults)
				}
				w.do(CloseDispute{ID: w.next, Loser: c.loser})
			}
			w.pass(l.Order.Conditions.UnitTimeout + 2)
			if late := len(l.Faults) > 0; late != c.late {
				t.Errorf("%s, %d replicas: late are %v", name, l.Order.Conditions.Replicas, l.Faults)
			}
		}
	}
}
