package bench

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/ipfs/go-cid"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/internal/testkit/barehost"
	"github.com/tally-network/tally/p2p"
	"github.com/tally-network/tally/store"
)

// How many strangers' connections come, from how many addresses, and the bytes that an
// honest peer fetches over and over meanwhile.
const (
	strangerConns = 10_000
	strangerAddrs = 50
	strangerBlob  = 32 << 20
)

// strangersHarm returns how much longer an honest fetch takes while strangers connect
// one after another, which work at most half of the time.
func strangersHarm(ctx context.Context, o Options) (float64, error) {
	b, err := newBesieged()
	if err != nil {
		return 0, err
	}
	defer b.close()
	const rounds = 20
	o.Tell("fetching %d MiB %d times undisturbed", strangerBlob>>20, rounds)
	var alone time.Duration
	for range rounds {
		t, err := b.fetch(ctx)
		if err != nil {
			return 0, err
		}
		alone += t / rounds
	}
	o.Tell("fetching while %d connections of strangers from %d addresses come", strangerConns, strangerAddrs)
	let, over := 0, make(chan error, 1)
	go func() {
		var err error
		let, err = b.storm(ctx, strangerConns)
		over <- err
	}()
	var total time.Duration
	for n := time.Duration(1); ; n++ {
		t, err := b.fetch(ctx)
		if err != nil {
			return 0, fmt.Errorf("an honest fetch among strangers: %w", err)
		}
		total += t
		select {
		case err := <-over:
			if err != nil {
				return 0, err
			}
			among := total / n
			o.Tell("%.3f s among strangers, of whom %d were let in, %.3f s undisturbed", among.Seconds(), let, alone.Seconds())
			return among.Seconds() / alone.Seconds(), nil
		default:
		}
	}
}

// besieged is a host with a blob, an honest peer that is registered with it, and
// strangers, one for each address.
type besieged struct {
	dir       string
	at, peer  *p2p.Host
	to        *store.Store
	ref       store.Ref
	strangers []host.Host
	closers   []func() error
}

func newBesieged() (b *besieged, err error) {
	b = &besieged{}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.dir, err = os.MkdirTemp("", "tally-bench-"); err != nil {
		return b, err
	}
	open := func(name string) (*p2p.Host, *store.Store, error) {
		_, key, err := ed25519.GenerateKey(nil)
		if err != nil {
			return nil, nil, err
		}
		h, err := p2p.New(p2p.Options{Key: key, Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
		if err != nil {
			return nil, nil, err
		}
		b.closers = append(b.closers, h.Close)
		s, err := store.Open(filepath.Join(b.dir, name), 1<<30)
		return h, s, err
	}
	var from *store.Store
	if b.at, from, err = open("at"); err != nil {
		return b, err
	}
	if b.peer, b.to, err = open("peer"); err != nil {
		return b, err
	}
	blob := make([]byte, strangerBlob)
	rand.NewChaCha8([32]byte{}).Read(blob)
	if b.ref, err = from.PutBytes("blob", blob); err != nil {
		return b, err
	}
	b.at.ServeBlocks(from, func(to peer.ID, _ canon.Hash, _ cid.Cid) bool { return to == b.peer.ID() })
	b.at.SetRegistered(p2p.Peers{b.peer.ID(): b.peer.Addrs()})
	if err = b.peer.SetAddrs(b.at.ID(), b.at.Addrs()); err != nil {
		return b, err
	}
	for i := range strangerAddrs {
		h, err := barehost.New(fmt.Sprintf("/ip4/127.0.0.%d/tcp/0", 2+i))
		if err != nil {
			return b, fmt.Errorf("addresses of a whole network on this machine are needed, as Linux has them: %w", err)
		}
		b.closers = append(b.closers, h.Close)
		b.strangers = append(b.strangers, h)
	}
	return b, nil
}

func (b *besieged) close() error {
	var err error
	for _, c := range b.closers {
		err = errors.Join(err, c())
	}
	return errors.Join(err, os.RemoveAll(b.dir))
}

// fetch gets the blob, as one that is not here.
func (b *besieged) fetch(ctx context.Context) (time.Duration, error) {
	if err := b.to.Delete(b.ref); err != nil && !errors.Is(err, store.ErrMissing) {
		return 0, err
	}
	begin := time.Now()
	err := b.to.Fetch(ctx, store.Request{Ref: b.ref, Sources: []store.Source{b.peer.Source(b.at.ID())}})
	return time.Since(begin), err
}

// storm lets strangers connect in turn, and rests as long as each has taken. It returns
// how many were let in.
func (b *besieged) storm(ctx context.Context, conns int) (in int, err error) {
	var to []ma.Multiaddr
	for _, a := range b.at.Addrs() {
		if strings.Contains(a, "/tcp/") {
			to = append(to, ma.StringCast(a))
		}
	}
	for i := range conns {
		begin := time.Now()
		s := b.strangers[i%len(b.strangers)]
		if s.Connect(ctx, peer.AddrInfo{ID: b.at.ID(), Addrs: to}) == nil {
			in++
		} else if sw, ok := s.Network().(*swarm.Swarm); ok {
			sw.Backoff().Clear(b.at.ID())
		}
		_ = s.Network().ClosePeer(b.at.ID())
		select {
		case <-time.After(time.Since(begin)):
		case <-ctx.Done():
			return in, ctx.Err()
		}
	}
	return in, nil
}
