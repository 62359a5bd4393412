package role

import (
	"crypto/ed25519"
	"errors"
	"slices"
	"testing"

	"github.com/ipfs/go-cid"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/p2p"
	"github.com/tally-network/tally/store"
)

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
	k := newKit(t)
	ref, err := k.Store.PutBytes("lists", []byte("where the checkpoints are"))
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
	k := newKit(t)
	ref, err := k.Store.PutBytes("file", make([]byte, 1000))
	if err != nil {
		t.Fatal(err)
	}
	full, err := store.Open(t.TempDir(), 999)
	if err != nil {
		t.Fatal(err)
	}
	if err := full.Fetch(t.Context(), store.Request{Ref: ref, Sources: []store.Source{k.Store}}); err == nil || !ours(err) {
		t.Errorf("a file that the disk has no room for: %v", err)
	}
	if err := full.Fetch(t.Context(), store.Request{Ref: ref}); err == nil || ours(err) {
		t.Errorf("a file that nobody has: %v", err)
	}
}

// The consumer of one order had another's list of checkpoints by naming it as a file of its
// own: whoever had it for the other pinned it for both, and handed it to parties of either.
func TestNothingIsServedForAnotherOrder(t *testing.T) {
	k := newKit(t)
	mine, _ := newLease(t, k)
	alone(t, k, mine)
	theirs := *mine
	theirs.Order.Nonce++
	ref, err := k.Store.PutBytes(Pin(theirs.Order.ID()), []byte("the checkpoints of their order"))
	if err != nil {
		t.Fatal(err)
	}
	stolen := File(job.RoleHeldOut, ref)
	mine.Order.Problem.Files = append(slices.Clone(mine.Order.Problem.Files), stolen)
	k.Serve(Lease{Lease: mine})
	k.Serve(Lease{Lease: &theirs})
	who := k.Host.ID() // a party of both
	if !k.mayRead(who, theirs.Order.ID(), ref.CID) {
		t.Fatal("who is a party may not read")
	}
	var away *FetchError
	if _, err := k.Bring(t.Context(), mine, stolen); !errors.As(err, &away) {
		t.Errorf("it is here for another order, and was brought for this one: %v", err)
	}
	if k.mayRead(who, mine.Order.ID(), ref.CID) {
		t.Error("it is read for the sake of an order that it is not of")
	}
}
