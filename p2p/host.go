package p2p

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	"github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/prometheus/client_golang/prometheus"
)

// Options are what a host needs.
type Options struct {
	// Key is the peer key; LoadKey reads it.
	Key ed25519.PrivateKey
	// Listen holds multiaddrs. Empty: TCP and QUIC on free ports of 127.0.0.1.
	Listen []string
	// Metrics is the node's own registry. Nil: nobody looks.
	Metrics prometheus.Registerer
	// Log is the node's. Nil: nothing is logged.
	Log *slog.Logger
}

// Limits of a host, apart from those of each protocol.
const (
	connsLow    = 128      // connections to keep when there are too many
	connsHigh   = 192      // too many
	memoryLimit = 1 << 30  // bytes that all connections and messages may reserve
	fdLimit     = 512      // file descriptors
	peerMemory  = 64 << 20 // bytes that one peer's messages may reserve
)

var loopback = []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"}

// Host is this machine on the peer network. All methods may be called
// concurrently.
type Host struct {
	host    host.Host
	log     *slog.Logger
	metrics *metrics
	in, out slots
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc

	shortest, longest time.Duration // waits of Keep

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
	conns, err := connmgr.NewConnManager(connsLow, connsHigh)
	if err != nil {
		return nil, fmt.Errorf("start p2p host: %w", err)
	}
	resources, err := rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(limits()), rcmgr.WithMetricsDisabled())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start p2p host: %w", err), conns.Close())
	}
	h := &Host{
		log:      o.Log,
		metrics:  newMetrics(),
		shortest: shortestWait,
		longest:  longestWait,
		addrs:    map[peer.ID][]string{},
		kept:     map[peer.ID]*keeping{},
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.host, err = libp2p.New(
		libp2p.Identity(key),
		libp2p.ListenAddrStrings(o.Listen...),
		libp2p.Transport(tcp.NewTCPTransport),
		libp2p.Transport(libp2pquic.NewTransport),
		libp2p.Security(noise.ID, noise.New),
		libp2p.ConnectionManager(conns),
		libp2p.ResourceManager(resources),
		libp2p.BandwidthReporter(h.metrics.bandwidth),
		libp2p.UserAgent("tally"),
		libp2p.Ping(false),
		libp2p.DisableRelay(),
		libp2p.DisableMetrics(),
		libp2p.DisableIdentifyAddressDiscovery(),
		// Our addresses are what we listen on: no probes by other peers.
		libp2p.ForceReachabilityPublic(),
	)
	if err != nil {
		h.cancel()
		return nil, fmt.Errorf("start p2p host: %w", err)
	}
	h.host.Network().Notify(&network.NotifyBundle{DisconnectedF: h.disconnected})
	if o.Metrics != nil {
		if err := h.metrics.register(o.Metrics, h.host); err != nil {
			return nil, errors.Join(fmt.Errorf("start p2p host: %w", err), h.Close())
		}
	}
	return h, nil
}

// limits bounds what peers together, and each of them, may take. They do not
// depend on the machine, so that a host behaves the same everywhere.
func limits() rcmgr.ConcreteLimitConfig {
	l := rcmgr.DefaultLimits
	libp2p.SetDefaultServiceLimits(&l)
	l.AddProtocolPeerLimit(blob.ID, rcmgr.BaseLimit{
		StreamsInbound:  4 * blob.PerPeer,
		StreamsOutbound: blob.PerPeer,
		Streams:         5 * blob.PerPeer,
		Memory:          peerMemory,
	}, rcmgr.BaseLimitIncrease{})
	return l.Scale(memoryLimit, fdLimit)
}

// ID returns the host's own name.
func (h *Host) ID() peer.ID { return h.host.ID() }

// Addrs returns the multiaddrs at which the host listens, to be registered.
func (h *Host) Addrs() []string {
	var out []string
	for _, a := range h.host.Network().ListenAddresses() {
		out = append(out, a.String())
	}
	slices.Sort(out)
	return out
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
