package job

import (
	"strings"
	"testing"
)

// bondOfSale is what each provider has at stake for what it has sold.
const bondOfSale = 700

// soldWorld is a lease of providers that have sold it capacity.
func soldWorld(t *testing.T) *world {
	t.Helper()
	m := testMatch()
	for _, p := range m.Providers {
		m.Sold = append(m.Sold, Share{p.Account, bondOfSale})
	}
	return newWorldOf(t, m)
}

// What stands behind a sale is free again once the lease ends, whether the seller was given anything or not.
func TestSaleCostsNothingIfTheLeadGaveNothing(t *testing.T) {
	w := soldWorld(t)
	if w.held["p0"] != bondOfSale {
		t.Fatalf("%d utally of p0 are reserved", w.held["p0"])
	}
	w.finish() // p0 computes nothing
	for _, p := range []string{"p0", "p1", "p2"} {
		if w.stakeOf(p) != stake || w.held[p] != 0 {
			t.Errorf("%s has %d of %d, %d of it reserved", p, w.stakeOf(p), stake, w.held[p])
		}
	}
}

// Who takes units of what it sold, and delivers none of too many, loses what stands behind the sale; who is late once does not.
func TestSellersThatDoNotDeliver(t *testing.T) {
	for late := range 4 {
		w := soldWorld(t)
		for range late {
			if err := w.assign(0, "p0"); err != nil {
				t.Fatal(err)
			}
			w.pass(w.lease.Order.Conditions.UnitTimeout + 1)
		}
		fee, err := w.lease.lateFee()
		if err != nil {
			t.Fatal(err)
		}
		want := uint64(late) * fee
		if late > w.lease.Params.MaxLate {
			want += bondOfSale
		}
		if lost := stake - w.stakeOf("p0"); lost != want {
			t.Errorf("%d late units cost %d, want %d", late, lost, want)
		}
		w.finish()
		if lost := stake - w.stakeOf("p0"); lost != want || w.stakeOf("p1") != stake {
			t.Errorf("%d late units cost %d at the end, want %d; p1 has %d", late, lost, want, w.stakeOf("p1"))
		}
	}
}

// A lease that nobody works on says what the chain saw: nobody who was ready, or nobody who led.
func TestAbandonedLeasesSayWhy(t *testing.T) {
	for ready, want := range map[bool]string{false: "none of them said that it was ready", true: "no validator led the work on"} {
		w := soldWorld(t)
		if ready {
			w.do(Ready{Provider: "p0"})
		}
		w.pass(w.lease.Params.LeadTimeout*int64(len(w.lease.Leads)) + 1)
		if !strings.Contains(w.lease.Reason, want) {
			t.Errorf("ready %v: %s", ready, w.lease.Reason)
		}
		w.pass(100)
		if w.lease.Phase != Settled || w.stakeOf("p0") != stake {
			t.Errorf("%v, p0 has %d of %d", w.lease.Phase, w.stakeOf("p0"), stake)
		}
	}
}
