package p2p

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	"github.com/libp2p/go-libp2p/p2p/net/upgrader"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	libp2pquic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
)

// Options are what a host needs.
type Options struct {
	// Key is the peer key; LoadKey reads it.
	Key ed25519.PrivateKey
	// Listen holds multiaddrs. Empty: TCP and QUIC on free ports of 127.0.0.1.
	Listen []string
	// MayDial, if not nil, says which addresses are dialled at all: peers tell of others than those that the host was given.
	MayDial func(ma.Multiaddr) bool
	// Metrics is the node's own registry. Nil: nobody looks.
	Metrics prometheus.Registerer
	// Log is the node's. Nil: nothing is logged.
	Log *slog.Logger
}

// Limits of a host, apart from those of each class and each protocol.
const (
	trimLow   = 16               // connections of strangers that are kept when there are too many
	trimHigh  = 32               // too many connections, of whomever
	trimGrace = 10 * time.Second // in which a new connection is left alone
	trimEvery = 5 * time.Second
	handshake = 5 * time.Second // from the first byte to a proven key
)

var loopback = []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"}

// Host is this machine on the peer network. All methods may be called
// concurrently.
type Host struct {
	host    host.Host
	log     *slog.Logger
	metrics *metrics
	door    *door
	in, out slots
	turns   [classes]*turns
	links   links
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc

	shortest, longest time.Duration // waits of Keep
	patience          time.Duration // for the first bytes of a message
	slowest           int           // bytes a second that come, or are taken, from then on

	mu      sync.Mutex
	closed  bool
	addrs   map[peer.ID][]string // as SetAddrs gave them
	kept    map[peer.ID]*keeping
	running sync.WaitGroup // handlers and keepers; added to while mu is held
}

// New starts a host, which listens at once and answers nothing yet.
func New(o Options) (*Host, error) {
	key, err := crypto.UnmarshalEd25519PrivateKey(o.Key)
	if err != nil {
		return nil, fmt.Errorf("start p2p host: peer key: %w", err)
	}
	if len(o.Listen) == 0 {
		o.Listen = loopback
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	conns, err := connmgr.NewConnManager(trimLow, trimHigh, connmgr.WithGracePeriod(trimGrace), connmgr.WithSilencePeriod(trimEvery))
	if err != nil {
		return nil, fmt.Errorf("start p2p host: %w", err)
	}
	door, err := newDoor()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start p2p host: %w", err), conns.Close())
	}
	h := &Host{
		log:      o.Log,
		door:     door,
		metrics:  newMetrics(),
		shortest: shortestWait,
		longest:  longestWait,
		patience: patience,
		slowest:  slowest,
		addrs:    map[peer.ID][]string{},
		kept:     map[peer.ID]*keeping{},
	}
	for c := range h.turns {
		h.turns[c] = newTurns(shares[c].answers)
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.host, err = libp2p.New(
		libp2p.Identity(key),
		libp2p.ListenAddrStrings(o.Listen...),
		libp2p.Transport(tcp.NewTCPTransport),
		libp2p.Transport(libp2pquic.NewTransport),
		libp2p.Security(noise.ID, noise.New),
		libp2p.ConnectionManager(conns),
		libp2p.ConnectionGater(gater{o.MayDial}),
		libp2p.ResourceManager(door),
		libp2p.BandwidthReporter(h.metrics.bandwidth),
		libp2p.UserAgent("tally"),
		libp2p.Ping(false),
		libp2p.DisableRelay(),
		libp2p.DisableMetrics(),
		libp2p.DisableIdentifyAddressDiscovery(),
		// Our addresses are what we listen on: no probes by other peers.
		libp2p.ForceReachabilityPublic(),
		libp2p.WithFxOption(fx.Supply([]upgrader.Option{upgrader.WithAcceptTimeout(handshake)})),
	)
	if err != nil {
		h.cancel()
		return nil, fmt.Errorf("start p2p host: %w", err)
	}
	h.host.Network().Notify(&network.NotifyBundle{ConnectedF: h.connected, DisconnectedF: h.disconnected})
	if o.Metrics != nil {
		if err := h.metrics.register(o.Metrics, h.host); err != nil {
			return nil, errors.Join(fmt.Errorf("start p2p host: %w", err), h.Close())
		}
	}
	return h, nil
}

// ID returns the host's own name.
func (h *Host) ID() peer.ID { return h.host.ID() }

// SetRegistered replaces the peers that the chain's registry names. They have a share
// of connections, streams and memory that no stranger can take.
func (h *Host) SetRegistered(peers Peers) { h.vouch("", registered, peers) }

// SetParties replaces the peers that take part in a lease here, which go before those
// that are merely registered; without peers the lease is forgotten. A peer that SetAddrs
// has named is a party too, unless it is a consumer.
func (h *Host) SetParties(lease string, peers Peers) { h.vouch("lease "+lease, party, peers) }

// SetConsumer replaces the peer of an order's consumer. An order costs little, so all consumers
// together have a share of their own. Nothing of a consumer is kept once it is replaced by none.
func (h *Host) SetConsumer(order string, peers Peers) { h.vouch("consumer "+order, consumer, peers) }

func (h *Host) vouch(group string, c class, peers Peers) {
	for _, id := range h.door.vouch(group, c, peers) {
		if c == consumer && h.door.classOf(id) == stranger {
			h.forget(id)
		}
		if h.Connected(id) {
			h.protect(id)
		}
	}
}

// Strangers returns how many connections of peers that nobody vouches for there have
// been: when it has grown, there may be somebody new in the registry.
func (h *Host) Strangers() int {
	h.door.mu.RLock()
	defer h.door.mu.RUnlock()
	return h.door.strangers
}

// vouched protects connections of all but strangers from the connection manager.
const vouched = "vouched"

func (h *Host) protect(id peer.ID) {
	if h.door.classOf(id) == stranger {
		h.host.ConnManager().Unprotect(id, vouched)
	} else {
		h.host.ConnManager().Protect(id, vouched)
	}
}

func (h *Host) connected(_ network.Network, c network.Conn) { h.protect(c.RemotePeer()) }

// Addrs returns the multiaddrs at which the host listens, to be registered.
func (h *Host) Addrs() []string {
	var out []string
	for _, a := range h.host.Network().ListenAddresses() {
		out = append(out, a.String())
	}
	slices.Sort(out)
	return out
}

// AddrInfo returns who the host is and where machines around find it. Addresses of this machine alone come last.
func (h *Host) AddrInfo() (peer.AddrInfo, error) {
	all, err := h.host.Network().InterfaceListenAddresses()
	if err != nil {
		return peer.AddrInfo{}, err
	}
	slices.SortStableFunc(all, func(a, b ma.Multiaddr) int {
		return cmp.Or(cmp.Compare(rankOf(a), rankOf(b)), strings.Compare(a.String(), b.String()))
	})
	return peer.AddrInfo{ID: h.ID(), Addrs: all}, nil
}

// rankOf is 1 of an address of this machine alone.
func rankOf(a ma.Multiaddr) int {
	if manet.IsIPLoopback(a) {
		return 1
	}
	return 0
}

// Connected reports whether there is a connection to the peer now.
func (h *Host) Connected(id peer.ID) bool {
	return h.host.Network().Connectedness(id) == network.Connected
}

// start admits one more goroutine that Close waits for.
func (h *Host) start() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.running.Add(1)
	}
	return !h.closed
}

// grace is how long Close waits for handlers to notice.
const grace = time.Second

// Close ends all connections and exchanges, and waits up to a second for the
// handlers to return.
func (h *Host) Close() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.cancel()
	err := h.host.Close()
	done := make(chan struct{})
	go func() { h.running.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(grace):
		err = errors.Join(err, errors.New("close p2p host: a handler does not end with its context"))
	}
	return err
}
