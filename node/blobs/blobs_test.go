package blobs

import (
	"crypto/ed25519"
	"slices"
	"strings"
	"testing"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/p2p"
	"github.com/tally-network/tally/store"
)

func newStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.TempDir(), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFileNamesABlob(t *testing.T) {
	want := store.RefOf([]byte("blob"))
	got, err := RefOf(File("data", want))
	if err != nil || got != want {
		t.Fatalf("%v, %v", got, err)
	}
	for name, f := range map[string]job.File{
		"no CID":      {Role: "data", Size: 4},
		"bad CID":     {Role: "data", CID: "bafy!", Size: 4},
		"larger than": {Role: "data", CID: want.CID.String(), Size: 1 << 63},
	} {
		if _, err := RefOf(f); err == nil || !strings.Contains(err.Error(), `"data"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A consumer fetched the checkpoints of units that no custodian attested to, and had them for
// nothing. Until a quorum has attested only who was drawn may read where they are.
func TestListsAreForWhoWasDrawn(t *testing.T) {
	all := p2p.Peers{}
	party := func(name string) job.Party {
		h := canon.Sum("key", []byte(name))
		p := job.Party{Account: name, Key: ed25519.NewKeyFromSeed(h[:]).Public().(ed25519.PublicKey)}
		id, err := p2p.PeerID(p.Key)
		if err != nil {
			t.Fatal(err)
		}
		all[id] = nil
		return p
	}
	disk := newStore(t)
	ref, err := disk.PutBytes("lists", []byte("where the checkpoints are"))
	if err != nil {
		t.Fatal(err)
	}
	people := map[string]job.Party{}
	for _, name := range []string{"consumer", "custodian", "auditor", "idle", "provider"} {
		people[name] = party(name)
	}
	u := job.Unit{
		Receipt: &job.Receipt{Data: File("checkpoints", ref)}, Attested: []job.Attestation{{Custodian: "custodian"}}, Audits: []job.Audit{{Auditor: "auditor"}},
	}
	l := &job.Lease{Units: []job.Unit{u}, Auditors: []job.Party{people["custodian"], people["auditor"], people["idle"]}}
	order := l.Order.ID()
	for status, want := range map[job.Status][]string{
		job.Received: {"custodian", "auditor"},
		job.Counted:  {"consumer", "custodian", "auditor", "idle", "provider"},
		job.Accepted: {"consumer", "custodian", "auditor", "idle", "provider"},
	} {
		l.Units[0].Status = status
		for name, p := range people {
			id, err := p2p.PeerID(p.Key)
			if err != nil {
				t.Fatal(err)
			}
			r := readers{lists: map[string]map[cid.Cid]audience{ListPin(order): listReaders(l)}, leases: map[string]p2p.Peers{Pin(order): all}}
			if may, _ := r.may(id, order, ref.CID, []string{ListPin(order)}); may != slices.Contains(want, name) {
				t.Errorf("%v: %s may read: %v", status, name, may)
			}
		}
	}
	// An attempt that nobody attested to is gone from the chain, and stays with its provider.
	l.Units[0] = job.Unit{Status: job.Open, Attempt: 1}
	if may := listReaders(l); len(may) != 0 {
		t.Fatalf("%d lists of attempts that were given up can be read", len(may))
	}
}

// A full disk is a custodian's own trouble: it says nothing of who hands files over.
func TestFullDiskIsOurs(t *testing.T) {
	disk := newStore(t)
	ref, err := disk.PutBytes("file", make([]byte, 1000))
	if err != nil {
		t.Fatal(err)
	}
	full, err := store.Open(t.TempDir(), 999)
	if err != nil {
		t.Fatal(err)
	}
	if err := full.Fetch(t.Context(), store.Request{Ref: ref, Sources: []store.Source{disk}}); err == nil || !ours(err) {
		t.Errorf("a file that the disk has no room for: %v", err)
	}
	if err := full.Fetch(t.Context(), store.Request{Ref: ref}); err == nil || ours(err) {
		t.Errorf("a file that nobody has: %v", err)
	}
}

// Consumer and lead cannot give the files to providers alone: until a quorum of custodians has
// them, a provider asks nobody else. Then a custodian that lies does not stop it.
func TestNobodyElseIsAskedBeforeTheQuorum(t *testing.T) {
	l := &job.Lease{
		Line: job.Line{Leads: []job.Leader{{Account: "lead"}}}, Providers: []job.Party{{Account: "p0"}, {Account: "p1"}},
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
