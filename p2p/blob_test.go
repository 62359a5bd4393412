package p2p

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/store"
)

var (
	_ Blocks       = (*store.Store)(nil)
	_ store.Source = Source{}
	_              = [1]int{}[maxBlock-store.BlockSize]
)

func newStore(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.Open(t.TempDir(), 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t testing.TB, s *store.Store, b []byte) store.Ref {
	t.Helper()
	r, err := s.PutBytes("test", b)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func noisy(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(n)}).Read(b)
	return b
}

func everybody(peer.ID, canon.Hash, cid.Cid) bool { return true }

func TestBlobsCross(t *testing.T) {
	for name, listen := range transports {
		t.Run(name, func(t *testing.T) {
			a, b := newHost(t, 1, listen), newHost(t, 2, listen)
			know(t, b, a)
			from, to := newStore(t), newStore(t)
			a.ServeBlocks(from, everybody)
			for _, n := range []int{0, 1, store.BlockSize, 3*store.BlockSize + 5} {
				blob := noisy(n)
				r := put(t, from, blob)
				if err := to.Fetch(soon(t), store.Request{Ref: r, Sources: []store.Source{b.Source(a.ID())}}); err != nil {
					t.Fatal(err)
				}
				if got, err := to.GetBytes(r, int64(n)); err != nil || !bytes.Equal(got, blob) {
					t.Fatalf("%d bytes came over different: %v", n, err)
				}
			}
		})
	}
}

func TestBlocksAreForThoseAllowed(t *testing.T) {
	a, friend, stranger := newHost(t, 1), newHost(t, 2), newHost(t, 3)
	know(t, friend, a)
	know(t, stranger, a)
	s := newStore(t)
	open, closed, other := put(t, s, []byte("open")), put(t, s, []byte("closed")), put(t, s, []byte("of another order"))
	mine := canon.Sum("order", []byte("mine"))
	absent, err := store.NewRef([32]byte{1}, 5)
	if err != nil {
		t.Fatal(err)
	}
	a.ServeBlocks(s, nil)
	if _, err := friend.Source(a.ID()).Block(soon(t), open.CID); !errors.Is(err, ErrRefused) {
		t.Errorf("without a callback: %v", err)
	}
	a.ServeBlocks(s, func(to peer.ID, order canon.Hash, c cid.Cid) bool {
		return to == friend.ID() && order == mine && c != closed.CID
	})
	for _, c := range []struct {
		who  *Host
		what cid.Cid
		ok   bool
		want string
	}{
		{friend, open.CID, true, ""},
		{friend, other.CID, false, "refused"},
		{friend, closed.CID, false, "refused"},
		{friend, absent.CID, false, "block is not here"},
		{stranger, open.CID, false, "refused"},
		{stranger, absent.CID, false, "refused"}, // as if it were there
		{friend, cid.Undef, false, "read request"},
	} {
		order := mine
		if c.what == other.CID {
			order = canon.Sum("order", []byte("other"))
		}
		b, err := c.who.Source(a.ID()).For(order).Block(soon(t), c.what)
		if (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s for %s: %d bytes, %v, want %q", c.what, c.who.ID(), len(b), err, c.want)
		}
		if err != nil && errors.Is(err, ErrRefused) != (c.want == "refused") {
			t.Errorf("%v", err)
		}
	}
}

// blocksFunc lets a test serve anything.
type blocksFunc func(context.Context, cid.Cid) ([]byte, error)

func (f blocksFunc) Block(ctx context.Context, c cid.Cid) ([]byte, error) { return f(ctx, c) }

func TestFetchAmongHostilePeers(t *testing.T) {
	blob := noisy(4*store.BlockSize + 9)
	good := newStore(t)
	r := put(t, good, blob)
	someOther := put(t, good, []byte("something else"))

	me := newHost(t, 1)
	var sources []store.Source
	var served atomic.Int64
	serve := func(n byte, from Blocks, allow Allow) {
		h := newHost(t, n)
		h.ServeBlocks(from, allow)
		know(t, me, h)
		sources = append(sources, me.Source(h.ID()))
	}
	serve(2, blocksFunc(func(ctx context.Context, c cid.Cid) ([]byte, error) { // wrong bytes
		b, err := good.Block(ctx, c)
		if err == nil {
			b[0] ^= 1
		}
		return b, err
	}), everybody)
	serve(3, blocksFunc(func(ctx context.Context, _ cid.Cid) ([]byte, error) { // wrong CID
		return good.Block(ctx, someOther.CID)
	}), everybody)
	serve(4, blocksFunc(func(context.Context, cid.Cid) ([]byte, error) { // too much
		return make([]byte, maxBlock+1), nil
	}), everybody)
	serve(5, good, nil)
	serve(6, blocksFunc(func(ctx context.Context, c cid.Cid) ([]byte, error) {
		served.Add(1)
		return good.Block(ctx, c)
	}), everybody)
	gone := newHost(t, 7)
	know(t, me, gone)
	sources = append(sources, me.Source(gone.ID()))
	gone.Close()

	var dropped []peer.ID
	s := newStore(t)
	err := s.Fetch(soon(t), store.Request{Ref: r, Sources: sources, Dropped: func(src store.Source, _ error) {
		dropped = append(dropped, src.(Source).Peer())
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.GetBytes(r, r.Size); err != nil || !bytes.Equal(got, blob) {
		t.Fatalf("the blob came over different: %v", err)
	}
	if served.Load() != 6 {
		t.Errorf("the honest peer served %d blocks, want 6", served.Load())
	}
	for _, id := range dropped {
		if id == sources[4].(Source).Peer() {
			t.Error("the honest peer was dropped")
		}
	}
	if len(dropped) == 0 {
		t.Error("no liar was dropped")
	}
}
