package sharing

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/tally-network/tally/p2p"
	"github.com/tally-network/tally/store"
)

// Scheme is how names begin.
const Scheme = "tally:"

// maxURI bounds a name in bytes: a file's own, and some addresses.
const maxURI = 4 << 10

// URI says what a file is, and who has it: a magnet link has the same parts as xl, dn and x.pe.
type URI struct {
	Ref      store.Ref
	Filename string // whose end says the format
	Peers    []peer.AddrInfo
}

// String returns what Parse reads.
func (n *URI) String() string {
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
func ParseURI(text string) (n URI, err error) {
	rest, ok := strings.CutPrefix(text, Scheme)
	if !ok || len(text) > maxURI {
		return n, fmt.Errorf("a name of %d bytes: it begins with %s and has at most %d", len(text), Scheme, maxURI)
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
