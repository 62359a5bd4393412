package p2p

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"
)

// Limits of what a registry entry may hold.
const (
	MaxAddrs   = 8   // addresses of one peer
	MaxAddrLen = 256 // bytes of one
)

// Waits between dials of a kept peer. A connection that lasted longer than
// the longest wait starts over with the shortest.
const (
	shortestWait = 200 * time.Millisecond
	longestWait  = 30 * time.Second
)

// parseAddrs reads the registered multiaddrs of a peer, which come from
// anybody. An address may end in /p2p/ and the peer's own ID.
func parseAddrs(id peer.ID, addrs []string) ([]ma.Multiaddr, error) {
	if len(addrs) == 0 || len(addrs) > MaxAddrs {
		return nil, fmt.Errorf("peer %s has %d addresses, give 1 to %d", id, len(addrs), MaxAddrs)
	}
	var out []ma.Multiaddr
	for _, text := range addrs {
		if len(text) > MaxAddrLen {
			return nil, fmt.Errorf("address of peer %s has %d bytes, the limit is %d", id, len(text), MaxAddrLen)
		}
		a, err := ma.NewMultiaddr(text)
		if err != nil {
			return nil, fmt.Errorf("address %q of peer %s: %w", text, id, err)
		}
		where, whose := peer.SplitAddr(a)
		if where == nil || whose != "" && whose != id {
			return nil, fmt.Errorf("address %q is not one of peer %s", text, id)
		}
		out = append(out, where)
	}
	return out, nil
}

// SetAddrs replaces the addresses at which a peer is dialled. A kept peer that
// is away is dialled at new ones at once.
func (h *Host) SetAddrs(id peer.ID, addrs []string) error {
	parsed, err := parseAddrs(id, addrs)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if slices.Equal(h.addrs[id], addrs) {
		return nil
	}
	h.addrs[id] = slices.Clone(addrs)
	h.door.dials(id)
	h.host.Peerstore().ClearAddrs(id)
	h.host.Peerstore().AddAddrs(id, parsed, peerstore.PermanentAddrTTL)
	if k := h.kept[id]; k != nil {
		signal(k.moved)
	}
	return nil
}

// forget lets go of the addresses of a peer.
func (h *Host) forget(id peer.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kept[id] == nil {
		delete(h.addrs, id)
		h.host.Peerstore().ClearAddrs(id)
	}
}

// Connect makes sure of a connection to a peer, dialling it by the addresses
// that SetAddrs gave.
func (h *Host) Connect(ctx context.Context, id peer.ID) error {
	// libp2p remembers failed dials for minutes. Whoever calls Connect has
	// waited as long as it thinks right.
	if s, ok := h.host.Network().(*swarm.Swarm); ok {
		s.Backoff().Clear(id)
	}
	if err := h.host.Connect(ctx, peer.AddrInfo{ID: id}); err != nil {
		return fmt.Errorf("connect to peer %s: %w", id, err)
	}
	return nil
}

// keeping is a peer that the host stays connected to.
type keeping struct {
	stop  context.CancelFunc
	lost  chan struct{} // of one place: the connection may be gone
	moved chan struct{} // of one place: the addresses have changed
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

const keepTag = "tally" // protects from the connection manager

// Keep connects to a peer in the background, and again, after growing waits,
// whenever the connection is gone, until Release or Close.
func (h *Host) Keep(id peer.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.kept[id] != nil || id == h.ID() {
		return
	}
	ctx, stop := context.WithCancel(h.ctx)
	k := &keeping{stop, make(chan struct{}, 1), make(chan struct{}, 1)}
	h.kept[id] = k
	h.host.ConnManager().Protect(id, keepTag)
	h.running.Add(1)
	go func() {
		defer h.running.Done()
		h.keep(ctx, id, k)
	}()
}

// Release ends Keep. The connection stays until either side wants it gone.
func (h *Host) Release(id peer.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k := h.kept[id]; k != nil {
		k.stop()
		delete(h.kept, id)
		h.host.ConnManager().Unprotect(id, keepTag)
	}
}

func (h *Host) keep(ctx context.Context, id peer.ID, k *keeping) {
	for wait := h.shortest; ctx.Err() == nil; {
		start := time.Now()
		if err := h.Connect(ctx, id); err != nil {
			h.log.Debug("cannot connect", "peer", id, "error", err, "wait", wait)
		} else {
			for ctx.Err() == nil && h.Connected(id) {
				select {
				case <-k.lost:
				case <-ctx.Done():
				}
			}
		}
		if time.Since(start) > h.longest {
			wait = h.shortest
		}
		select {
		case <-time.After(wait/2 + rand.N(wait/2)):
			wait = min(2*wait, h.longest)
		case <-k.moved:
			wait = h.shortest
		case <-ctx.Done():
		}
	}
}

func (h *Host) disconnected(_ network.Network, c network.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k := h.kept[c.RemotePeer()]; k != nil {
		signal(k.lost)
	}
	h.host.ConnManager().Unprotect(c.RemotePeer(), vouched)
}
