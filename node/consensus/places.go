package consensus

import (
	"net/netip"

	"github.com/cometbft/cometbft/p2p"
)

// A node lets 40 nodes in that it does not name. Of each network of addresses it keeps
// perNetwork of them, so that whoever has one network alone leaves places to others.
const (
	perNetwork         = 4
	network4, network6 = 24, 48 // bits that say which network an address is of
)

// places sends away who is one too many of its network. It is a reactor, for only these
// see both the key and the address of a peer; it has no messages.
type places struct{ p2p.BaseReactor }

func newPlaces() *places {
	r := &places{}
	r.BaseReactor = *p2p.NewBaseReactor("places", r)
	return r
}

// AddPeer implements p2p.Reactor.
func (r *places) AddPeer(p p2p.Peer) {
	if !r.strange(p) {
		return
	}
	here, others := networkOf(p), 0
	r.Switch.Peers().ForEach(func(other p2p.Peer) {
		if r.strange(other) && networkOf(other) == here {
			others++ // p itself too
		}
	})
	if others > perNetwork {
		r.Logger.Debug("too many peers of one network", "peer", p.ID(), "network", here)
		go r.Switch.StopPeerGracefully(p) // the other reactors are being told of p
	}
}

// strange reports whether a peer holds a place by itself: it came, and is not named.
func (r *places) strange(p p2p.Peer) bool {
	return !p.IsOutbound() && !r.Switch.IsPeerUnconditional(p.ID())
}

func networkOf(p p2p.Peer) netip.Prefix {
	ip, _ := netip.AddrFromSlice(p.RemoteIP())
	ip = ip.Unmap()
	bits := network6
	if ip.Is4() {
		bits = network4
	}
	at, _ := ip.Prefix(bits) // none, like every other that is no address
	return at
}
