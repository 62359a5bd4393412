package p2p

import (
	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// gater refuses to dial some addresses; nil: none. Who comes in is for the door to judge.
type gater struct{ mayDial func(ma.Multiaddr) bool }

// InterceptAddrDial implements connmgr.ConnectionGater. Names are resolved by then.
func (g gater) InterceptAddrDial(_ peer.ID, a ma.Multiaddr) bool {
	return g.mayDial == nil || g.mayDial(a)
}

// InterceptPeerDial implements connmgr.ConnectionGater.
func (gater) InterceptPeerDial(peer.ID) bool { return true }

// InterceptAccept implements connmgr.ConnectionGater.
func (gater) InterceptAccept(network.ConnMultiaddrs) bool { return true }

// InterceptSecured implements connmgr.ConnectionGater.
func (gater) InterceptSecured(network.Direction, peer.ID, network.ConnMultiaddrs) bool { return true }

// InterceptUpgraded implements connmgr.ConnectionGater.
func (gater) InterceptUpgraded(network.Conn) (bool, control.DisconnectReason) { return true, 0 }
