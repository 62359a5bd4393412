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

	"github.com/cometbft/cometbft/p2p"
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
