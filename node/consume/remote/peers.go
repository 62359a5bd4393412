package remote

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/tally-network/tally/internal/fetch"
	"github.com/tally-network/tally/node/consume/sharing"
	"github.com/tally-network/tally/p2p"
)

// fromPeers finds a file that peers share.
func (c *Cache) fromPeers(_ context.Context, net *fetch.Network, source string) (*found, error) {
	n, err := sharing.ParseURI(source)
	if err != nil {
		return nil, err
	}
	var mayDial func(ma.Multiaddr) bool
	if !c.isTrusted(source) {
		mayDial = isPublic // of what peers tell of themselves, too
		if err := checkPublic(n.Peers); err != nil {
			return nil, fmt.Errorf("%w; if you know the peer, add --allow '%s'", err, source)
		}
	}
	if !isName(n.Filename) {
		return nil, fmt.Errorf("%.80q is no name of a file", n.Filename)
	}
	file := location{Expected: fetch.Expected{Bytes: n.Ref.Size}, name: n.Filename}
	file.copy = func(ctx context.Context, to *os.File, have int64, report func(done int64)) (err error) {
		_, key, err := ed25519.GenerateKey(nil) // nobody needs to know who asks
		if err != nil {
			return err
		}
		h, err := p2p.New(p2p.Options{Key: key, MayDial: mayDial})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, h.Close()) }()
		return n.Copy(ctx, h, to, have, report)
	}
	return &found{files: []location{file}, net: net.Anonymous(), key: sharing.Scheme + n.Ref.String() + "?" + n.Filename, pinned: source}, nil
}

// checkPublic refuses peers at addresses that are not public. An order's author must not reach the user's own network.
func checkPublic(peers []peer.AddrInfo) error {
	for _, p := range peers {
		for _, a := range p.Addrs {
			if !isPublic(a) {
				return fmt.Errorf("peer %s %w", a, fetch.ErrInside)
			}
		}
	}
	return nil
}

// isPublic reports whether an address is one of the internet. A name is none: it may lead anywhere.
func isPublic(a ma.Multiaddr) bool {
	ip, err := manet.ToIP(a)
	if err != nil {
		return false
	}
	of, ok := netip.AddrFromSlice(ip)
	return ok && fetch.IsPublic(of)
}
