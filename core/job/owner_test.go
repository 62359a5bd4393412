package job

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Nobody judges, or is compared with, a peer of the same owner, and no owner has two words about
// one attempt, however many accounts each has.
func TestOwnersAreKeptApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := testMatch()
		replicas := rapid.SampledFrom([]int{0, 2, 3}).Draw(t, "replicas")
		if replicas > 0 {
			m = replicatedMatch(replicas, 6)
		}
		m.Order.Nonce, m.Validators = rapid.Uint64().Draw(t, "nonce"), nil
		for i := range rapid.IntRange(4, 12).Draw(t, "validators") {
			m.Validators = append(m.Validators, party(fmt.Sprintf("v%02d", 1+i), Rates{}))
		}
		declare := func(p *Party) {
			p.Owner = rapid.SampledFrom([]string{"", "o1", "o2", "o3", "v0", "v01"}).Draw(t, "owner of "+p.Account)
		}
		m.Owner = rapid.SampledFrom([]string{"", "o1", "o4"}).Draw(t, "owner of the lead")
		for _, all := range [][]Party{m.Providers, m.Validators} {
			for i := range all {
				declare(&all[i])
			}
		}
		if c := &m.Order.Conditions; m.referees() < max(c.Auditors, c.Custodians) || Owners(m.Providers) < max(c.Replicas, 1) {
			t.Skip("too few owners")
		}
		w := newWorldOf(t, m)
		distinct := func(what string, accounts ...string) {
			seen := map[string]string{}
			for _, a := range accounts {
				o := w.lease.ownerOf(a)
				if other, has := seen[o]; has {
					t.Fatalf("%s: %s owns %s and %s", what, o, other, a)
				}
				seen[o] = a
			}
		}
		var files []string
		for _, k := range w.lease.Files.Custodians {
			files = append(files, k.Account)
		}
		distinct("files", append(files, w.lease.Lead())...)
		unit := 0
		if replicas > 0 {
			distinct("places", w.giveOut(unit)...)
			for _, who := range w.placed(unit) {
				w.do(commitTo(w.says(unit, who, "", "")))
			}
			for _, who := range w.placed(unit) {
				w.do(w.says(unit, who, "", ""))
			}
		} else {
			if err := w.assign(unit, m.Providers[0].Account); err != nil {
				t.Fatal(err)
			}
			w.submit(w.receipt(unit, ""))
		}
		w.pass(1)
		u := &w.lease.Units[unit]
		if len(u.Attested) < m.Order.Conditions.Quorum() {
			t.Fatalf("%d custodians were drawn", len(u.Attested))
		}
		for _, judge := range slices.Concat(u.custodians(), auditorsOf(u)) {
			distinct("judges", append(u.computers(), judge)...)
			distinct("judges", w.lease.Lead(), judge)
		}
		distinct("custodians", u.custodians()...)
		distinct("auditors", auditorsOf(u)...)
	})
}

func auditorsOf(u *Unit) (out []string) {
	for _, a := range u.Audits {
		out = append(out, a.Auditor)
	}
	return out
}

// Where too few owners could judge, or compute beside one another, no lease begins.
func TestTooFewOwners(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Match)
		want   string
	}{
		"two validators of one":     {func(m *Match) { m.Validators[0].Owner = m.Validators[1].Account }, "2 independent validators"},
		"a validator of the lead":   {func(m *Match) { m.Validators[0].Owner = m.Lead }, "2 independent validators"},
		"a lead of a validator":     {func(m *Match) { m.Owner = m.Validators[0].Account }, "2 independent validators"},
		"a provider of a validator": {func(m *Match) { m.Providers[0].Owner = m.Validators[0].Account }, "2 independent validators"},
		"a provider of the lead":    {func(m *Match) { m.Providers[0].Owner = m.Lead }, ""},
		"providers of one":          {func(m *Match) { m.Providers[0].Owner, m.Providers[1].Owner = "o", "o" }, ""},
		"replicas of one": {func(m *Match) {
			*m = replicatedMatch(2, 2)
			m.Providers[0].Owner, m.Providers[1].Owner = "o", "o"
		}, "providers of 1 owners"},
	} {
		m := testMatch()
		c.change(&m)
		_, _, err := NewLease(m, 0)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
