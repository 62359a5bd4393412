package p2p

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/x/rate"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// class is what a host knows of the other end of a connection. Each has a share of
// its own, so that none can take what another needs. Later classes are better.
type class int

const (
	newcomer   class = iota // has not proven its key yet
	expected                // likewise, at an address of a peer that is vouched for
	stranger                // nobody vouches for its key
	consumer                // an order that is served here names it; orders are cheap
	registered              // the chain's registry has it
	party                   // it takes part in a lease here, or this host dials it
	classes
)

// share is what a class may have: all of it together, each peer, and each address
// (an IPv4 address, or 56 bits of an IPv6 address). 0 is no limit.
type share struct {
	conns   int
	streams int
	memory  int64 // bytes that messages and the windows of streams may reserve
	answers int   // requests being answered

	peerConns   int
	peerStreams int
	peerMemory  int64 // bytes

	addrConns int
	addrBurst int     // new connections at once
	addrRate  float64 // new connections a second, after a burst
}

// shares are what each class may have. A connection is a newcomer's, or is expected,
// until the handshake; from then on it belongs to the class of its peer. The connection
// manager trims those of strangers to trimLow once there are more than trimHigh of all.
var shares = [classes]share{
	newcomer:   {conns: 256, addrConns: 4, addrBurst: 16, addrRate: 1},
	expected:   {conns: 128, addrConns: 64, addrBurst: 128, addrRate: 16},
	stranger:   {conns: 64, streams: 512, memory: 256 << 20, answers: 8, peerConns: 2, peerStreams: 24, peerMemory: 16 << 20, addrConns: 8},
	consumer:   {conns: 64, streams: 1024, memory: 256 << 20, answers: 16, peerConns: 2, peerStreams: 64, peerMemory: 32 << 20, addrConns: 8},
	registered: {conns: 192, streams: 4096, memory: 512 << 20, answers: 32, peerConns: 8, peerStreams: 256, peerMemory: 64 << 20},
	party:      {conns: 384, streams: 8192, memory: 1 << 30, answers: 128, peerConns: 8, peerStreams: 512, peerMemory: 128 << 20},
}

// Prefixes, in bits, that count as one address.
const addr4, addr6 = 32, 56

// manager returns the resource manager that a share describes. It does not depend on
// the machine, so that a host behaves the same everywhere.
func (s share) manager() (network.ResourceManager, error) {
	limits := rcmgr.DefaultLimits
	libp2p.SetDefaultServiceLimits(&limits)
	all := resources(s.conns, s.streams, s.memory)
	negotiating := resources(s.conns, s.streams/2, s.memory/2)
	each := resources(s.peerConns, s.peerStreams, s.peerMemory)
	config := rcmgr.PartialLimitConfig{
		System: all, Transient: negotiating, PeerDefault: each, ProtocolDefault: all, ProtocolPeerDefault: each,
	}.Build(limits.Scale(s.memory, s.conns))

	perAddr := func(bits int) []rcmgr.ConnLimitPerSubnet {
		if s.addrConns == 0 {
			return []rcmgr.ConnLimitPerSubnet{}
		}
		return []rcmgr.ConnLimitPerSubnet{{PrefixLength: bits, ConnCount: s.addrConns}}
	}
	pace := &rate.Limiter{}
	if s.addrRate > 0 {
		l := rate.Limit{RPS: s.addrRate, Burst: s.addrBurst}
		pace.SubnetRateLimiter = rate.SubnetLimiter{
			IPv4SubnetLimits: []rate.SubnetLimit{{PrefixLength: addr4, Limit: l}},
			IPv6SubnetLimits: []rate.SubnetLimit{{PrefixLength: addr6, Limit: l}},
		}
	}
	noExceptions := []rcmgr.NetworkPrefixLimit{} // libp2p excepts the addresses of this machine
	return rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(config), rcmgr.WithMetricsDisabled(),
		rcmgr.WithLimitPerSubnet(perAddr(addr4), perAddr(addr6)), rcmgr.WithNetworkPrefixLimit(noExceptions, noExceptions),
		rcmgr.WithConnRateLimiters(pace))
}

func resources(conns, streams int, memory int64) rcmgr.ResourceLimits {
	c, s := rcmgr.LimitVal(conns), rcmgr.LimitVal(streams)
	return rcmgr.ResourceLimits{
		Conns: c, ConnsInbound: c, ConnsOutbound: c, FD: c,
		Streams: s, StreamsInbound: s, StreamsOutbound: s, Memory: rcmgr.LimitVal64(memory),
	}
}

// door is the resource manager of a host: one for each class, and who is in which.
type door struct {
	network.ResourceManager // of parties: libp2p's views of a manager see theirs
	managers                [classes]network.ResourceManager

	mu        sync.RWMutex
	groups    map[string]group
	dialled   map[peer.ID]bool
	strangers int // connections of strangers so far
}

// Peers are peers and the multiaddrs from which they may come.
type Peers map[peer.ID][]string

// group is the peers that one part of the node vouches for: the registry, or a lease.
type group struct {
	as    class
	peers Peers
	at    map[netip.Addr]bool // addresses from which they may come
}

func newDoor() (*door, error) {
	d := &door{groups: map[string]group{}, dialled: map[peer.ID]bool{}}
	for c, s := range shares {
		m, err := s.manager()
		if err != nil {
			return nil, errors.Join(err, d.Close())
		}
		d.managers[c] = m
	}
	d.ResourceManager = d.managers[party]
	return d, nil
}

// Close implements network.ResourceManager.
func (d *door) Close() (err error) {
	for _, m := range d.managers {
		if m != nil {
			err = errors.Join(err, m.Close())
		}
	}
	return err
}

// vouch replaces the group of a name; without peers the group is gone. It returns the
// peers whose class may have changed.
func (d *door) vouch(name string, c class, peers Peers) (changed []peer.ID) {
	d.mu.RLock()
	old := d.groups[name].peers
	d.mu.RUnlock()
	if maps.EqualFunc(old, peers, slices.Equal[[]string]) {
		return nil
	}
	at := map[netip.Addr]bool{}
	for _, addrs := range peers {
		for _, text := range addrs[:min(len(addrs), MaxAddrs)] {
			if a, err := ma.NewMultiaddr(text); err == nil {
				if ip := address(a); ip.IsValid() {
					at[ip] = true
				}
			}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(peers) == 0 {
		delete(d.groups, name)
	} else {
		d.groups[name] = group{c, peers, at}
	}
	if c == consumer {
		for id := range peers { // order: any
			delete(d.dialled, id)
		}
	}
	return append(slices.Collect(maps.Keys(old)), slices.Collect(maps.Keys(peers))...)
}

// maxDialled is how many peers are parties because this host dials them. Those of
// leases are parties anyway.
const maxDialled = 1024

// dials makes a party of a peer whose addresses the host was given, unless it is
// only a consumer.
func (d *door) dials(id peer.ID) {
	if d.classOf(id) == consumer {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.dialled) < maxDialled {
		d.dialled[id] = true
	}
}

// classOf returns the best class that somebody vouches for.
func (d *door) classOf(id peer.ID) class {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.dialled[id] {
		return party
	}
	best := stranger
	for _, g := range d.groups {
		if _, ok := g.peers[id]; ok {
			best = max(best, g.as)
		}
	}
	return best
}

// expects reports whether somebody who is vouched for may come from an address.
func (d *door) expects(from netip.Addr) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for _, g := range d.groups {
		if g.at[from] {
			return true
		}
	}
	return false
}

// address returns the IP address of a multiaddr, if it has one.
func address(a ma.Multiaddr) netip.Addr {
	if a == nil {
		return netip.Addr{}
	}
	ip, err := manet.ToIP(a)
	if err != nil {
		return netip.Addr{}
	}
	out, _ := netip.AddrFromSlice(ip)
	return out.Unmap()
}

// VerifySourceAddress implements network.ResourceManager. A packet can name any source,
// so an address that is vouched for earns nothing here.
func (d *door) VerifySourceAddress(from net.Addr) bool {
	return d.managers[newcomer].VerifySourceAddress(from)
}

// OpenConnection implements network.ResourceManager.
func (d *door) OpenConnection(dir network.Direction, usefd bool, to ma.Multiaddr) (network.ConnManagementScope, error) {
	c := newcomer
	if dir == network.DirOutbound {
		c = party // the host chose whom to dial
	} else if d.expects(address(to)) {
		c = expected
	}
	scope, err := d.managers[c].OpenConnection(dir, usefd, to)
	if err != nil {
		return nil, err
	}
	return &connection{door: d, scope: scope, dir: dir, usefd: usefd, addr: to}, nil
}

// OpenStream implements network.ResourceManager.
func (d *door) OpenStream(id peer.ID, dir network.Direction) (network.StreamManagementScope, error) {
	return d.managers[d.classOf(id)].OpenStream(id, dir)
}

// connection is the scope of a connection. What an inbound one takes counts against
// newcomers, or against those expected, until its key is proven, and then against its
// peer's class. An outbound one is a party's, unless it leads to a consumer.
type connection struct {
	door  *door
	dir   network.Direction
	usefd bool
	addr  ma.Multiaddr

	mu    sync.Mutex
	scope network.ConnManagementScope
	done  bool
}

// SetPeer implements network.ConnManagementScope.
func (p *connection) SetPeer(id peer.ID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done || p.scope.PeerScope() != nil {
		return fmt.Errorf("connection of peer %s is over, or another's", id)
	}
	c := p.door.classOf(id)
	if p.dir == network.DirOutbound && c != consumer {
		return p.scope.SetPeer(id)
	}
	if c == stranger {
		p.door.mu.Lock()
		p.door.strangers++
		p.door.mu.Unlock()
	}
	next, err := p.door.managers[c].OpenConnection(p.dir, p.usefd, p.addr)
	if err != nil {
		return err
	}
	if err := next.SetPeer(id); err != nil {
		next.Done()
		return err
	}
	p.scope.Done()
	p.scope = next
	return nil
}

// Done implements network.ConnManagementScope.
func (p *connection) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = true
	p.scope.Done()
}

func (p *connection) current() network.ConnManagementScope {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.scope
}

// PeerScope implements network.ConnManagementScope.
func (p *connection) PeerScope() network.PeerScope { return p.current().PeerScope() }

// ReserveMemory implements network.ResourceScope.
func (p *connection) ReserveMemory(size int, prio uint8) error {
	return p.current().ReserveMemory(size, prio)
}

// ReleaseMemory implements network.ResourceScope.
func (p *connection) ReleaseMemory(size int) { p.current().ReleaseMemory(size) }

// Stat implements network.ResourceScope.
func (p *connection) Stat() network.ScopeStat { return p.current().Stat() }

// BeginSpan implements network.ResourceScope.
func (p *connection) BeginSpan() (network.ResourceScopeSpan, error) { return p.current().BeginSpan() }
