package sharing

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/tally-network/tally/p2p"
	"github.com/tally-network/tally/store"
)

// Scheme is how names begin.
const Scheme = "tally:"

// maxName bounds a name in bytes: a file's own, and some addresses.
const maxName = 4 << 10

// Name says what a file is, and who has it.
type Name struct {
	Ref      store.Ref
	Filename string // whose end says the format
	Peers    []peer.AddrInfo
}

// String returns what Parse reads.
func (n *Name) String() string {
	q := []string{"filename=" + url.QueryEscape(n.Filename)}
	for _, p := range n.Peers {
		addrs, err := peer.AddrInfoToP2pAddrs(&p)
		if err != nil {
			continue // of no peer
		}
		for _, a := range addrs {
			q = append(q, "peer="+a.String())
		}
	}
	return Scheme + n.Ref.String() + "?" + strings.Join(q, "&")
}

// Parse reads a name, which may come from anybody.
func Parse(text string) (n Name, err error) {
	rest, ok := strings.CutPrefix(text, Scheme)
	if !ok || len(text) > maxName {
		return n, fmt.Errorf("a name of %d bytes: it begins with %s and has at most %d", len(text), Scheme, maxName)
	}
	ref, query, _ := strings.Cut(rest, "?")
	if n.Ref, err = store.ParseRef(ref); err != nil {
		return n, err
	}
	q, err := url.ParseQuery(query)
	if err != nil {
		return n, fmt.Errorf("what is behind the ?: %w", err)
	}
	if n.Filename = q.Get("filename"); n.Filename == "" || n.Filename != path.Base(n.Filename) {
		return n, fmt.Errorf("its filename is %.80q: append ?filename= and a name, as in ?filename=data.csv", n.Filename)
	}
	var all []ma.Multiaddr
	for _, text := range q["peer"] {
		a, err := ma.NewMultiaddr(text)
		if err != nil {
			return n, fmt.Errorf("peer %.80q: %w", text, err)
		}
		all = append(all, a)
	}
	if len(all) == 0 || len(all) > p2p.MaxAddrs {
		return n, fmt.Errorf("%d peers have it: append &peer= and an address as tally data share prints it, %d at most", len(all), p2p.MaxAddrs)
	}
	if n.Peers, err = peer.AddrInfosFromP2pAddrs(all...); err != nil {
		return n, fmt.Errorf("peers: %w", err)
	}
	slices.SortFunc(n.Peers, func(a, b peer.AddrInfo) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return n, nil
}

// CheckPublic returns an error unless each peer is at an address that public is true of: an order's author must not have machines
// of a user's own network asked.
func (n *Name) CheckPublic(public func(netip.Addr) bool) error {
	for _, p := range n.Peers {
		for _, a := range p.Addrs {
			ip, err := manet.ToIP(a)
			if err != nil {
				return fmt.Errorf("peer %s has no IP address: name one", a)
			}
			if of, ok := netip.AddrFromSlice(ip); !ok || !public(of) {
				return errors.Join(ErrInside, fmt.Errorf("peer %s", a))
			}
		}
	}
	return nil
}

// ErrInside says that a name leads into the user's own network.
var ErrInside = errors.New("it lies on a machine of your own network, where what others name is not asked for")
