package consensus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/cometbft/cometbft/blocksync"
	"github.com/cometbft/cometbft/p2p"
	cmtstatesync "github.com/cometbft/cometbft/statesync"

	"github.com/tally-network/tally/node/statesync"
)

// How often a named peer is looked after: after growing waits while it is away.
const (
	shortestRest = 50 * time.Millisecond
	longestRest  = 5 * time.Second
)

// keepPeers keeps the node connected to the named peers until ctx ends. CometBFT would do so for
// persistent peers, but it waits up to 3 s before it dials at all. It forgets a peer when two of
// its own attempts cross, and gives up after a day. A validator that is left alone then never
// votes again.
func keepPeers(ctx context.Context, sw p2p.Switcher, peers []string, log *slog.Logger) {
	var all sync.WaitGroup
	for _, peer := range peers {
		if !strings.Contains(peer, "@") {
			continue // it dials this node
		}
		all.Go(func() { keepPeer(ctx, sw, peer, log) })
	}
	all.Wait()
}

func keepPeer(ctx context.Context, sw p2p.Switcher, peer string, log *slog.Logger) {
	id, _, _ := strings.Cut(peer, "@")
	for rest := shortestRest; ; {
		if sw.Peers().Has(p2p.ID(id)) {
			rest = shortestRest
		} else if err := dial(sw, peer); err != nil {
			log.Debug("cannot dial peer", "peer", peer, "error", err)
			rest = min(2*rest, longestRest)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(rest/2 + rand.N(rest)): // two that dial each other must not go on doing so
		}
	}
}

// dial looks the peer's host up each time: its address may change.
func dial(sw p2p.Switcher, peer string) error {
	a, err := p2p.NewNetAddressString(peer)
	if err != nil {
		return err
	}
	return sw.DialPeerWithAddress(a)
}

// peerIDs returns the IDs of peers.
func peerIDs(peers []string) (ids []string) {
	for _, peer := range peers {
		id, _, _ := strings.Cut(peer, "@")
		ids = append(ids, id)
	}
	return ids
}

// notOfHost is what no name, number or port of a host has. Peers are printed as commands to be run.
func notOfHost(r rune) bool {
	return !(r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) || strings.ContainsRune(".-_:[]%", r))
}

// nodeID is how nodes write theirs.
var nodeID = regexp.MustCompile(`^[0-9a-f]{40}$`)

// CheckPeers refuses what is neither id@host:port nor an id. A host that is not known
// now may be later. CometBFT would skip all that stands before "://".
func CheckPeers(peers []string) error {
	for _, peer := range peers {
		id, at, dialled := strings.Cut(peer, "@")
		if !nodeID.MatchString(id) || strings.ContainsFunc(at, notOfHost) {
			return fmt.Errorf("peer %q is neither id@host:port nor an id of 40 hexadecimal digits (0-9, a-f)", peer)
		}
		if !dialled {
			continue
		}
		var unknown p2p.ErrNetAddressLookup
		if _, err := p2p.NewNetAddressString(peer); err != nil && !errors.As(err, &unknown) {
			return fmt.Errorf("peer %q is neither id@host:port nor an id: %w", peer, err)
		}
	}
	return nil
}

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
