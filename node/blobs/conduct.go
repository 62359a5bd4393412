package blobs

import (
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/tally-network/tally/core/canon"
)

// conduct is what a role remembers of the peers that it asked for blobs.
type conduct struct {
	mu      sync.Mutex
	wrong   map[canon.Hash]map[peer.ID]bool // by order: gave wrong bytes; not asked again for it
	stalled map[peer.ID]time.Time           // when it last did not answer in time; asked last for a while
}

// grudge is how long a peer that has stalled is asked after the others.
const grudge = time.Minute

// gave notes that a peer gave wrong bytes for an order.
func (c *conduct) gave(order canon.Hash, id peer.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wrong == nil {
		c.wrong = map[canon.Hash]map[peer.ID]bool{}
	}
	if c.wrong[order] == nil {
		c.wrong[order] = map[peer.ID]bool{}
	}
	c.wrong[order][id] = true
}

// stalls notes that a peer did not answer in time.
func (c *conduct) stalls(id peer.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stalled == nil {
		c.stalled = map[peer.ID]time.Time{}
	}
	now := time.Now()
	c.stalled[id] = now
	for other, at := range c.stalled { // order: each by itself
		if now.Sub(at) > grudge {
			delete(c.stalled, other)
		}
	}
}

// sort leaves out who gave wrong bytes for an order, and puts who has stalled last.
func (c *conduct) sort(order canon.Hash, ids []peer.ID) []peer.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids = slices.DeleteFunc(ids, func(id peer.ID) bool { return c.wrong[order][id] })
	late := func(id peer.ID) int {
		if at, ok := c.stalled[id]; ok && time.Since(at) <= grudge {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(ids, func(a, b peer.ID) int { return late(a) - late(b) })
	return ids
}

// forget lets go of what is remembered about an order.
func (c *conduct) forget(order canon.Hash) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.wrong, order)
}
