package peers

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/internal/testkit/ledger"
	"github.com/tally-network/tally/p2p"
)

func newHost(t *testing.T, seed byte) (*p2p.Host, []byte) {
	t.Helper()
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	h, err := p2p.New(p2p.Options{Key: key, Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h, key.Public().(ed25519.PublicKey)
}

// directory returns the directory of host 1, and the ledger that it asks.
func directory(t *testing.T) (*Directory, *ledger.Ledger) {
	n := ledger.Start(t)
	h, key := newHost(t, 1)
	n.Keys["me"] = key
	return &Directory{Chain: n.Client, Host: h, Log: slog.New(slog.DiscardHandler)}, n
}

// pass lets blocks pass: the head of a ledger stands still, so what is known ages.
func pass(d *Directory, blocks int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked -= blocks
	for account, r := range d.known {
		r.height -= blocks
		d.known[account] = r
	}
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func TestAnEntryIsBelievedForAWhile(t *testing.T) {
	d, n := directory(t)
	for _, step := range []struct {
		pass int64
		on   string // the chain
		want string
	}{{0, "a", "a"}, {fresh - 1, "b", "a"}, {1, "b", "b"}, {0, "c", "b"}} {
		pass(d, step.pass)
		n.Keys["p"] = []byte(step.on)
		if got, err := d.Registered(t.Context(), "p"); err != nil || string(got.PeerKey) != step.want {
			t.Errorf("the chain says %s, and the directory %s, %v: want %s", step.on, got.PeerKey, err, step.want)
		}
	}
}

// What could not be had is not remembered: the peer may register in the next block.
func TestAnAccountThatIsNoPeerIsAskedForAgain(t *testing.T) {
	d, n := directory(t)
	if _, err := d.Reach(t.Context(), "p"); err == nil || !strings.Contains(err.Error(), "peer p: ") {
		t.Errorf("the error is %v", err)
	}
	n.Keys["p"] = n.Keys["me"]
	if _, err := d.Registered(t.Context(), "p"); err != nil {
		t.Error(err)
	}
}

func TestPeersAreReachedWhereTheyAreRegistered(t *testing.T) {
	d, n := directory(t)
	other, key := newHost(t, 2)
	n.Peers = []providerv1.Peer{{Account: "p", PeerKey: key, Listing: providerv1.Listing{Addrs: other.Addrs()}}}
	id, err := d.Reach(t.Context(), "p")
	if err == nil {
		err = d.Host.Connect(t.Context(), id)
	}
	if err != nil || id != other.ID() {
		t.Errorf("reached %s, want %s: %v", id, other.ID(), err)
	}
	if id, err := d.Reach(t.Context(), "me"); err != nil || id != d.Host.ID() {
		t.Errorf("we reach ourselves as %s: %v", id, err)
	}
	if _, err := d.ReachAt([]byte("short"), nil); err == nil {
		t.Error("a key of five bytes is reached")
	}
	if _, err := d.ReachAt(key, []string{"nowhere"}); err == nil {
		t.Error("a peer is reached at no address")
	}
}

// roles registers a provider, a peer whose key is none, and a challenger behind it on another page.
func roles(t *testing.T, n *ledger.Ledger) (provider, challenger peer.ID) {
	t.Helper()
	p, providerKey := newHost(t, 2)
	c, challengerKey := newHost(t, 3)
	n.Peers = []providerv1.Peer{
		{Account: "p", PeerKey: providerKey, Roles: []providerv1.Role{providerv1.ROLE_PROVIDER}},
		{Account: "x", PeerKey: []byte("no key"), Roles: []providerv1.Role{providerv1.ROLE_PROVIDER}},
		{Account: "c", PeerKey: challengerKey, Roles: []providerv1.Role{providerv1.ROLE_CHALLENGER}},
	}
	return p.ID(), c.ID()
}

func TestARoleIsThatOfTheRegistry(t *testing.T) {
	d, n := directory(t)
	provider, challenger := roles(t, n)
	pass(d, 1)
	for _, x := range []struct {
		id   peer.ID
		role providerv1.Role
		want bool
	}{
		{provider, providerv1.ROLE_PROVIDER, true}, {provider, providerv1.ROLE_VALIDATOR, false},
		{challenger, providerv1.ROLE_CHALLENGER, true}, {d.Host.ID(), providerv1.ROLE_PROVIDER, false},
	} {
		if got := d.HasRole(t.Context(), x.id, x.role); got != x.want {
			t.Errorf("%s as %v: %v", x.id, x.role, got)
		}
	}
	if n.Listed.Load() != 1 {
		t.Errorf("the registry was listed %d times in a block", n.Listed.Load())
	}
	n.Peers = nil
	if pass(d, fresh-1); !d.HasRole(t.Context(), provider, providerv1.ROLE_PROVIDER) || n.Listed.Load() != 1 {
		t.Error("a role is not believed for long enough")
	}
	if pass(d, 1); d.HasRole(t.Context(), provider, providerv1.ROLE_PROVIDER) {
		t.Error("a role is believed for too long")
	}
}

// A node that does not answer takes away nothing that was known, and is asked again.
func TestRolesOutlastANodeThatDoesNotAnswer(t *testing.T) {
	d, n := directory(t)
	provider, challenger := roles(t, n)
	pass(d, 1)
	n.Err = errors.New("no luck")
	if d.HasRole(t.Context(), provider, providerv1.ROLE_PROVIDER) {
		t.Error("a peer has a role of which nobody told")
	}
	n.Err = nil
	if !d.HasRole(t.Context(), provider, providerv1.ROLE_PROVIDER) {
		t.Error("the registry is not listed again")
	}
	n.Err = errors.New("no luck")
	pass(d, 2*fresh)
	if !d.HasRole(t.Context(), provider, providerv1.ROLE_PROVIDER) || !d.HasRole(t.Context(), challenger, providerv1.ROLE_CHALLENGER) {
		t.Error("roles are forgotten")
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if n.Err = nil; d.HasRole(gone, provider, providerv1.ROLE_VALIDATOR) {
		t.Error("a provider is a validator")
	}
}

// A stranger may have just registered: the registry is listed again for it, once a block.
func TestAStrangerIsLookedForInTheNextBlock(t *testing.T) {
	d, n := directory(t)
	roles(t, n)
	pass(d, 1) // asked at height −1
	listed := func(want int64) {
		t.Helper()
		until(t, "the registry is listed", func() bool { return n.Listed.Load() == want && d.listing.TryLock() })
		d.listing.Unlock()
	}
	d.Greet(t.Context(), -1+fresh-1)
	d.Greet(t.Context(), -1+fresh)
	listed(1)
	pass(d, 1)
	stranger, _ := newHost(t, 4)
	if err := stranger.SetAddrs(d.Host.ID(), d.Host.Addrs()); err != nil {
		t.Fatal(err)
	}
	if err := stranger.Connect(t.Context(), d.Host.ID()); err != nil {
		t.Fatal(err)
	}
	until(t, "a stranger has come", func() bool { return d.Host.Strangers() == 1 })
	d.Greet(t.Context(), -1) // the block in which it was listed
	d.Greet(t.Context(), 0)
	listed(2)
	pass(d, 1)
	d.Greet(t.Context(), 0) // nobody has come since
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen != 1 || n.Listed.Load() != 2 {
		t.Errorf("%d strangers are known after the registry was listed %d times", d.seen, n.Listed.Load())
	}
}
