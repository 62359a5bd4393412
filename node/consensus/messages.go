package consensus

import (
	"fmt"

	"github.com/cometbft/cometbft/blocksync"
	"github.com/cometbft/cometbft/p2p"
	cmtstatesync "github.com/cometbft/cometbft/statesync"

	"github.com/tally-network/tally/node/statesync"
)

// maxBlockMessage bounds a message that brings a block: blocks have 4 MiB. CometBFT takes 100 MiB, and keeps what has come of
// one for each peer.
const maxBlockMessage = 8 << 20

// boundMessages puts reactors that take smaller messages in place of CometBFT's, before the node starts.
func boundMessages(sw p2p.Switcher, s *statesync.Snapshots) error {
	for name, bound := range map[string]func(p2p.Reactor) p2p.Reactor{
		"BLOCKSYNC": func(r p2p.Reactor) p2p.Reactor {
			if r, ok := r.(*blocksync.Reactor); ok {
				return blockGiver{r}
			}
			return nil
		},
		"STATESYNC": func(r p2p.Reactor) p2p.Reactor {
			if r, ok := r.(*cmtstatesync.Reactor); ok {
				return statesync.NewGiver(r, s)
			}
			return nil
		},
	} {
		old, _ := sw.Reactor(name)
		smaller := bound(old)
		if smaller == nil {
			return fmt.Errorf("the reactor %s of CometBFT is a %T: its messages have no bound", name, old)
		}
		sw.RemoveReactor(name, old)
		sw.AddReactor(name, smaller)
	}
	return nil
}

// blockGiver is CometBFT's reactor that fetches blocks and gives them.
type blockGiver struct{ *blocksync.Reactor }

// GetChannels implements p2p.Reactor.
func (b blockGiver) GetChannels() []*p2p.ChannelDescriptor {
	all := b.Reactor.GetChannels()
	for _, c := range all {
		c.RecvMessageCapacity = maxBlockMessage
	}
	return all
}
