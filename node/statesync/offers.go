package statesync

import (
	"crypto/sha256"
	"errors"
	"sync"

	"github.com/cometbft/cometbft/p2p"
	cmtsync "github.com/cometbft/cometbft/proto/tendermint/statesync"
	cmtstatesync "github.com/cometbft/cometbft/statesync"
)

const (
	maxOffers     = 16 // distinct snapshots of a peer: an honest one has two at a time
	maxUnanswered = 6  // requests for one chunk that a peer may leave: CometBFT asks every 10 s
)

// offers is CometBFT's reactor of state sync while a node restores. CometBFT drops a snapshot whose chunks do not come, and
// never the peer, who may offer others without end. This one leaves a peer that withholds a chunk, with all that it offers.
type offers struct {
	*cmtstatesync.Reactor
	mu    sync.Mutex
	peers map[p2p.ID]*conduct
}

// conduct is what a peer has done. It stays when the peer goes and comes again.
type conduct struct {
	offered map[[sha256.Size]byte]bool
	asked   map[cmtsync.ChunkRequest]int // requests that are not answered
	left    bool
}

func newOffers(r *cmtstatesync.Reactor) *offers {
	return &offers{Reactor: r, peers: map[p2p.ID]*conduct{}}
}

// Receive implements p2p.Reactor.
func (o *offers) Receive(e p2p.Envelope) {
	switch m := e.Message.(type) {
	case *cmtsync.SnapshotsResponse:
		if !o.hears(e.Src.ID(), m) {
			return
		}
		e.Src = askedPeer{e.Src, o} // is asked for chunks
	case *cmtsync.ChunkResponse:
		if !m.Missing {
			o.answered(e.Src.ID(), cmtsync.ChunkRequest{Height: m.Height, Format: m.Format, Index: m.Index})
		}
	}
	o.Reactor.Receive(e)
}

func (o *offers) of(id p2p.ID) *conduct {
	c := o.peers[id]
	if c == nil {
		c = &conduct{offered: map[[sha256.Size]byte]bool{}, asked: map[cmtsync.ChunkRequest]int{}}
		o.peers[id] = c
	}
	return c
}

// hears reports whether an offer of a peer counts.
func (o *offers) hears(id p2p.ID, m *cmtsync.SnapshotsResponse) bool {
	text, err := m.Marshal()
	if err != nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	c, key := o.of(id), sha256.Sum256(text)
	if c.left || !c.offered[key] && len(c.offered) == maxOffers {
		return false
	}
	c.offered[key] = true
	return true
}

// ask reports whether a peer may be asked for a chunk.
func (o *offers) ask(id p2p.ID, m cmtsync.ChunkRequest) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.of(id)
	c.asked[m]++
	c.left = c.left || c.asked[m] > maxUnanswered
	return !c.left
}

func (o *offers) answered(id p2p.ID, m cmtsync.ChunkRequest) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.of(id).asked, m)
}

// askedPeer is a peer that CometBFT asks for chunks of what it has offered.
type askedPeer struct {
	p2p.Peer
	by *offers
}

// Send implements p2p.Peer.
func (p askedPeer) Send(e p2p.Envelope) bool {
	if m, ok := e.Message.(*cmtsync.ChunkRequest); ok && !p.by.ask(p.ID(), *m) {
		p.by.Reactor.RemovePeer(p.Peer, errors.New("it gives no chunks of what it offers"))
		return false
	}
	return p.Peer.Send(e)
}
