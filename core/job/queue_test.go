package job

import (
	"crypto/ed25519"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A lead that keeps the work for p1 must serve p0 as soon as that says that it is
// ready; the word stands for the signature.
func TestLeadCannotFavourItsOwn(t *testing.T) {
	w := newWorld(t)
	w.compute(0, "p1", "")
	w.do(Ready{Provider: "p0"})
	if err := w.assign(1, "p1"); err != nil {
		t.Fatalf("an assignment of the same block: %v", err)
	}
	w.submit(w.receipt(1, ""))
	w.attest(1)
	w.audit(1, true)
	w.pass(20)
	w.do(w.merge())
	for _, who := range []string{"p1", "p2"} {
		if err := w.assign(2, who); err == nil || !strings.Contains(err.Error(), "serve it before "+who) {
			t.Fatalf("%s is served before who waits: %v", who, err)
		}
	}
	if err := w.assignSigned(2, "p0", nil); err != nil {
		t.Fatal(err)
	}
	if len(w.lease.Queue) != 0 || w.lease.Units[2].Provider != "p0" {
		t.Fatalf("waiting %v, unit 2 has %s", w.lease.Queue, w.lease.Units[2].Provider)
	}
	if err := w.assignSigned(3, "p0", nil); err == nil {
		t.Fatal("one word served for two units")
	}
	if err := w.assign(3, "p1"); err != nil {
		t.Fatal(err)
	}
}

// If the lead gives nothing to anybody, it is idle like any other.
func TestLeadThatServesNobodyIsReplaced(t *testing.T) {
	w := newWorld(t)
	w.do(Ready{Provider: "p0"})
	w.pass(w.lease.Params.LeadTimeout + 1)
	w.do(w.takeLead(w.lease.Leads[1].Account))
	if w.stakeOf("v0") == stake {
		t.Fatal("the lead lost nothing")
	}
}

// Those that wait are served by how many units of the round they have had, then
// by how long they wait.
func TestWaitingAreServedInOrder(t *testing.T) {
	w := newWorld(t)
	w.compute(0, "p0", "")
	for _, p := range []string{"p0", "p1", "p2"} {
		w.do(Ready{Provider: p})
		w.pass(1)
	}
	if got := w.lease.Waits(); !slices.Equal(got, []string{"p1", "p2", "p0"}) {
		t.Fatalf("waiting: %v", got)
	}
	for _, p := range []string{"p0", "p2"} {
		if err := w.assign(1, p); err == nil || !strings.HasPrefix(err.Error(), "p1 waits") {
			t.Fatalf("%s before p1: %v", p, err)
		}
	}
	w.do(Ready{Provider: "p1", Withdraw: true})
	if err := w.assign(1, "p2"); err != nil {
		t.Fatal(err)
	}
}

// Who cannot take a unit now holds up nobody.
func TestWhoCannotWorkIsPassedBy(t *testing.T) {
	for name, lame := range map[string]func(w *world){
		"barred":         func(w *world) { w.lease.Barred = append(w.lease.Barred, "p0") },
		"jailed":         func(w *world) { w.inactive = map[string]bool{"p0": true} },
		"without a bond": func(w *world) { w.free["p0"], w.purse["p0"] = 0, stake },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.do(Ready{Provider: "p0"})
			w.pass(1)
			if err := w.assign(0, "p1"); err == nil {
				t.Fatal("p0 waits and can work")
			}
			lame(w)
			if err := w.assign(0, "p1"); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestReadyIsRefused(t *testing.T) {
	for want, prepare := range map[string]func(w *world) Ready{
		"not a provider": func(*world) Ready { return Ready{Provider: "v1"} },
		"waits for a unit already": func(w *world) Ready {
			w.do(Ready{Provider: "p0"})
			return Ready{Provider: "p0"}
		},
		"does not wait": func(*world) Ready { return Ready{Provider: "p0", Withdraw: true} },
		"has a unit to compute": func(w *world) Ready {
			if err := w.assign(0, "p0"); err != nil {
				w.t.Fatal(err)
			}
			return Ready{Provider: "p0"}
		},
		"no more units": func(w *world) Ready {
			w.do(Decline{"v0", "why"})
			return Ready{Provider: "p0"}
		},
	} {
		w := newWorld(t)
		if err := w.try(prepare(w)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// assignPast gives out units of a lease in which some wait who have nothing free.
func assignPast(t fataler, waiting, units int) func() {
	m := testMatch()
	p := &m.Order.Problem
	p.Rounds, p.Shards, p.Records, m.Order.Conditions.MaxPrice, m.Providers = 1, 256, 100_000, 1<<50, nil
	for i := range waiting + 128 {
		m.Providers = append(m.Providers, party(fmt.Sprintf("p%04d", i), Rates{1000, 10}))
	}
	w := newWorldOf(t, m)
	e := Assign{By: w.lease.Lead()}
	for i := range waiting {
		p := m.Providers[i].Account
		w.lease.Queue, e.Waiting = append(w.lease.Queue, Waiting{Provider: p}), append(e.Waiting, Standing{Provider: p})
	}
	for u := range units {
		p := m.Providers[waiting+u/2].Account
		acc := Acceptance{w.lease.Order.ID(), u, 0, p}
		e.Units = append(e.Units, Assignment{u, 0, ed25519.Sign(w.keys[p], acc.SignBytes()), Standing{Provider: p, Free: 1 << 60}})
	}
	return func() {
		if _, _, err := Apply(w.lease, e, w.now+1); err != nil {
			t.Fatal(err)
		}
	}
}

// What a unit of an assignment costs does not grow with who waits: each refusal to one of them allocates its reason.
func TestAssigningPastThoseThatWaitIsCheap(t *testing.T) {
	unit := func(waiting int) float64 {
		const units = 65
		return (testing.AllocsPerRun(1, assignPast(t, waiting, units)) - testing.AllocsPerRun(1, assignPast(t, waiting, 1))) / (units - 1)
	}
	if few, many := unit(4), unit(200); many > few+2 {
		t.Errorf("a unit takes %.1f allocations where 200 wait, %.1f where 4 do", many, few)
	}
}

// 256 units on two busy cores, where each unit asked all who wait, and now: 10 wait: 51 and 28 ms; 200: 389 and
// 76 ms; 890: 2,196 and 55 ms.
func BenchmarkAssignPastThoseThatWait(b *testing.B) {
	for _, waiting := range []int{10, 200, 890} {
		b.Run(fmt.Sprint(waiting), func(b *testing.B) {
			apply := assignPast(b, waiting, 256)
			for b.Loop() {
				apply()
			}
		})
	}
}
