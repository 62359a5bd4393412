package duty_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/internal/testkit/nettest"
	"github.com/tally-network/tally/node/replay"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/p2p"
)

// The blobs of a lease are for its parties and for registered watchers; nobody
// else gets them, nor blobs that are of no lease.
func TestBlobsAreForTheParties(t *testing.T) {
	t.Parallel()
	n := nettest.Start(t, nettest.Options{})
	l := n.Settle(n.Post(nil))
	file, _ := l.Order.Problem.File(replay.RoleModel)
	ref, err := role.RefOf(file)
	if err != nil {
		t.Fatal(err)
	}
	private, err := n.Member("provider-0").Kit.Store.PutBytes("private", []byte("of no lease"))
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := p2p.New(p2p.Options{Key: key, Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	at := n.Member("provider-0").Kit.Host
	for name, who := range map[string]*p2p.Host{
		"stranger": stranger, "provider-1": n.Member("provider-1").Kit.Host, "validator-0": n.Member("validator-0").Kit.Host,
		"validator-1": n.Member("validator-1").Kit.Host, "watcher-0": n.Member("watcher-0").Kit.Host, "consumer": n.Consumer.Kit.Host,
	} {
		if err := who.SetAddrs(at.ID(), at.Addrs()); err != nil {
			t.Fatal(err)
		}
		b, err := who.Source(at.ID()).Block(t.Context(), ref.CID)
		switch {
		case name == "stranger" && !errors.Is(err, p2p.ErrRefused):
			t.Errorf("a stranger got %d bytes, %v", len(b), err)
		case name != "stranger" && (err != nil || !bytes.Contains(b, []byte("embedding"))):
			t.Errorf("%s got %d bytes, %v", name, len(b), err)
		}
		if b, err := who.Source(at.ID()).Block(t.Context(), private.CID); !errors.Is(err, p2p.ErrRefused) {
			t.Errorf("%s got %d bytes of no lease, %v", name, len(b), err)
		}
	}
}

// A provider takes units from the lead of a lease alone, and only those that are
// to be given out at the time.
func TestOffersThatAreNotTaken(t *testing.T) {
	t.Parallel()
	gate := nettest.NewGate()
	n := nettest.Start(t, nettest.Options{Bend: holdRound(0, gate)})
	id := n.Post(nil)
	offer := func(from string, o role.UnitOffer) string {
		k := n.Member(from).Kit
		to, err := k.Reach(t.Context(), n.Member("provider-0").Home.Address)
		if err != nil {
			t.Fatal(err)
		}
		a, err := role.Offers.Call(t.Context(), k.Host, to, o)
		switch {
		case err != nil:
			return err.Error()
		case len(a.Signature) > 0:
			return "taken"
		}
		return a.Reason
	}
	n.Lease(id, "the first round given out", func(l *job.Lease) bool {
		return l.Units[0].Status == job.Assigned && l.Units[1].Status == job.Assigned
	})
	for name, c := range map[string]struct {
		from  string
		offer role.UnitOffer
		words string
	}{
		"no order":        {"validator-0", role.UnitOffer{Order: canon.Sum("none")}, "lease of order"},
		"given out":       {"validator-0", role.UnitOffer{Order: id}, "not to be given out"},
		"later attempt":   {"validator-0", role.UnitOffer{Order: id, Attempt: 1}, "not to be given out"},
		"later round":     {"validator-0", role.UnitOffer{Order: id, Unit: 2}, "not to be given out"},
		"no unit":         {"validator-0", role.UnitOffer{Order: id, Unit: 4}, "not to be given out"},
		"after all units": {"validator-0", role.UnitOffer{Order: id, Unit: 1 << 19}, "not to be given out"},
	} {
		if got := offer(c.from, c.offer); !strings.Contains(got, c.words) {
			t.Errorf("%s: %s", name, got)
		}
	}
	gate.Open()
	n.Settle(id)

	// A second order, whose units stay open while its lead does nothing.
	n.End("validator-0")
	second := n.Post(nil)
	n.Lease(second, "a lease", func(*job.Lease) bool { return true })
	for from, words := range map[string]string{
		"validator-1": "whose peer you are not", "provider-1": "whose peer you are not", "watcher-0": "whose peer you are not", "validator-0": "taken",
	} {
		if got := offer(from, role.UnitOffer{Order: second}); !strings.Contains(got, words) {
			t.Errorf("%s: %s", from, got)
		}
	}
}
