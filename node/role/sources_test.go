package role

import (
	"slices"
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
)

// Consumer and lead cannot give the files to providers alone: until a quorum of custodians has
// them, a provider asks nobody else. Then a custodian that lies does not stop it.
func TestNobodyElseIsAskedBeforeTheQuorum(t *testing.T) {
	l := &job.Lease{
		Leads: []job.Leader{{Account: "lead"}}, Providers: []job.Party{{Account: "p0"}, {Account: "p1"}},
		Files: job.Files{Custodians: []job.FileCustodian{{Account: "k0", Says: job.Had}, {Account: "k1"}}},
		Units: []job.Unit{{Audits: []job.Audit{{Auditor: "auditor"}}, Attested: []job.Attestation{{Custodian: "custodian"}, {Custodian: "auditor"}}}},
	}
	for said, want := range map[job.Word][]string{
		job.Silent: nil, job.Missing: nil, job.Had: {"lead", "auditor", "custodian", "p0", "p1"},
	} {
		l.Files.Said = said
		if got := Others(l); !slices.Equal(got, want) {
			t.Errorf("files %v: %q are asked, want %q", said, got, want)
		}
	}
	if got := Custodians(l); !slices.Equal(got, []string{"k0"}) {
		t.Errorf("%q keep the files", got)
	}
}

func TestPeersAreAskedByTheirConduct(t *testing.T) {
	var c conduct
	order, other := canon.Sum("order"), canon.Sum("other")
	c.stalls("late")
	c.gave(order, "liar")
	want := func(order canon.Hash, want ...peer.ID) {
		t.Helper()
		if got := c.sort(order, []peer.ID{"late", "liar", "a", "b"}); !slices.Equal(got, want) {
			t.Errorf("%q are asked, want %q", got, want)
		}
	}
	want(order, "a", "b", "late")
	want(other, "liar", "a", "b", "late")
	c.forget(order)
	want(order, "liar", "a", "b", "late")
}
