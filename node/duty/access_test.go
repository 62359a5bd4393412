package duty_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"testing"

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
