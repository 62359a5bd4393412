package statesync

import (
	"time"

	"github.com/cometbft/cometbft/p2p"
	cmtsync "github.com/cometbft/cometbft/proto/tendermint/statesync"
	cmtstatesync "github.com/cometbft/cometbft/statesync"
	"golang.org/x/time/rate"
)

// Rate at which a node gives chunks to all peers together.
const (
	chunksPerSecond = 2
	chunksAtOnce    = 8
	longestWait     = 20 * time.Second // for as many peers as a node has. Who comes and goes would else fill the line for hours
)

// maxRequest bounds what is sent to a node that gives snapshots, in bytes: requests alone.
const maxRequest = 1 << 10

// giver is CometBFT's reactor of state sync of a node that gives snapshots and restores none. A request for a chunk waits its
// turn, and with it all that its peer says: so a peer has one request in line, however many it sends.
type giver struct {
	*cmtstatesync.Reactor
	snapshots *Snapshots
	turns     *rate.Limiter
}

// NewGiver makes a node's reactor of state sync one that gives snapshots and restores none.
func NewGiver(r *cmtstatesync.Reactor, s *Snapshots) p2p.Reactor {
	return &giver{r, s, rate.NewLimiter(chunksPerSecond, chunksAtOnce)}
}

// GetChannels implements p2p.Reactor. CometBFT would keep half messages of 20 MB for each peer, and ten chunks that it does
// not read.
func (g *giver) GetChannels() []*p2p.ChannelDescriptor {
	all := g.Reactor.GetChannels()
	for _, c := range all {
		c.RecvMessageCapacity = maxRequest
		if c.ID == cmtstatesync.ChunkChannel {
			c.SendQueueCapacity = 1
		}
	}
	return all
}

// Receive implements p2p.Reactor.
func (g *giver) Receive(e p2p.Envelope) {
	switch m := e.Message.(type) {
	case *cmtsync.SnapshotsRequest:
	case *cmtsync.ChunkRequest:
		if g.snapshots.has(m) && !g.wait() { // of others no chunk is read
			return
		}
	default:
		return // nobody was asked
	}
	g.Reactor.Receive(e)
}

// wait returns once a chunk may be given, false if the line is too long or the node stops before.
func (g *giver) wait() bool {
	turn := g.turns.Reserve()
	if turn.Delay() > longestWait {
		turn.Cancel()
		return false
	}
	select {
	case <-time.After(turn.Delay()):
		return true
	case <-g.Quit():
		return false
	}
}
