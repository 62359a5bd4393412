package blobs

import (
	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/tally-network/tally/core/canon"
)

// MayRead reports whether a peer may have a block for the sake of an order.
func (x *Exchange) MayRead(who peer.ID, order canon.Hash, block cid.Cid) bool {
	return x.mayRead(who, order, block)
}
