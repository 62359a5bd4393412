package p2p

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// Link is how fast a peer has answered this host, and handed over blocks. A field that is 0 was not seen.
type Link struct {
	Peer peer.ID
	RTT  uint32 // µs from a request to the beginning of its response, at best of late
	Rate uint64 // bytes a second, a mean of late
}

const (
	maxLinks = 1024
	// A rate is told of a sample. A small one is told too early, by the first round trip; a large one too late to be of use.
	minSample  = 64 << 10        // bytes, once nothing is under way
	maxSample  = 8 << 20         // bytes, though more are on their way
	stallAfter = 2 * time.Second // after which it is told however little has come
	keyLen     = 32
	linkLen    = keyLen + 4 + 8
)

// links are what a host has seen of peers that somebody vouches for: it costs a stake to be among them. Where there are too
// many, who was asked longest ago is forgotten. After a restart they are seen anew.
type links struct {
	mu sync.Mutex
	of map[peer.ID]*seen
}

// seen is what was seen of a peer, and of the exchanges with it that are under way. These share the link, so a
// rate is told of all together: what has come while there were any.
type seen struct {
	Link
	last    time.Time // it was asked
	running int
	since   time.Time
	bytes   int
}

// begin says that a peer is asked for something. What it returns is to be called once: with when the response began,
// zero if it did not, and how many bytes have come.
func (l *links) begin(id peer.ID, now time.Time) (end func(first, now time.Time, bytes int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.of[id]
	if s == nil {
		s = &seen{Link: Link{Peer: id}}
		l.enter(s)
	}
	s.last = now
	if s.running++; s.running == 1 {
		s.since, s.bytes = now, 0
	}
	return func(first, end time.Time, bytes int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		s.running--
		if !first.IsZero() {
			s.trip(first.Sub(now))
		}
		s.bytes += bytes
		if took := end.Sub(s.since); s.running == 0 && (s.bytes >= minSample || took >= stallAfter) || s.bytes >= maxSample {
			s.rate(took)
			s.since, s.bytes = end, 0
		}
	}
}

func (l *links) enter(s *seen) {
	if l.of == nil {
		l.of = map[peer.ID]*seen{}
	}
	if len(l.of) >= maxLinks {
		var oldest *seen
		for _, x := range l.of { // order: of several that are equally old, whichever
			if oldest == nil || x.last.Before(oldest.last) {
				oldest = x
			}
		}
		delete(l.of, oldest.Peer)
	}
	l.of[s.Peer] = s
}

// trip enters how long a response took to begin. A way is as long as its fastest trip, for all else is waiting; it is
// thought longer by and by.
func (s *seen) trip(d time.Duration) {
	t := int64(min(max(d.Microseconds(), 1), 1<<31))
	if was := int64(s.RTT); was > 0 && t > was {
		t = was + (t-was)/8
	}
	s.RTT = uint32(t)
}

// rate enters what has come in a while.
func (s *seen) rate(d time.Duration) {
	r := int64(s.bytes) * 1_000_000 / max(d.Microseconds(), 1)
	if was := int64(s.Rate); was > 0 {
		r = was + (r-was)/8
	}
	s.Rate = uint64(max(r, 1))
}

// Links returns what this host has seen of its peers, in the order of their keys.
func (h *Host) Links() (out []Link) {
	h.links.mu.Lock()
	defer h.links.mu.Unlock()
	for _, s := range h.links.of { // sorted below
		if s.RTT > 0 {
			out = append(out, s.Link)
		}
	}
	slices.SortFunc(out, func(a, b Link) int { return bytes.Compare([]byte(a.Peer), []byte(b.Peer)) })
	return out
}

// ServeLinks tells whoever asks what this host has seen of its peers.
func (h *Host) ServeLinks() {
	linksOf.Handle(h, func(context.Context, peer.ID, struct{}) ([]Link, error) { return h.Links(), nil })
}

// LinksOf asks a peer what it has seen of others. Nobody proves it.
func (h *Host) LinksOf(ctx context.Context, id peer.ID) ([]Link, error) {
	return linksOf.Call(ctx, h, id, struct{}{})
}

var linksOf = Typed[struct{}, []Link]{
	Protocol: Protocol{ID: "/tally/links/1.0.0", MaxResponse: maxLinks * linkLen, Timeout: 5 * time.Second, PerPeer: 1, timed: true},
	Request:  Codec[struct{}]{func(struct{}) []byte { return nil }, func([]byte) (struct{}, error) { return struct{}{}, nil }},
	Response: Codec[[]Link]{encodeLinks, decodeLinks},
}

// encodeLinks writes key, round trip and rate of each, numbers big-endian.
func encodeLinks(all []Link) (out []byte) {
	for _, l := range all {
		key, err := PublicKey(l.Peer)
		if err != nil {
			continue // no registered peer
		}
		out = append(out, key...)
		out = binary.BigEndian.AppendUint32(out, l.RTT)
		out = binary.BigEndian.AppendUint64(out, l.Rate)
	}
	return out
}

func decodeLinks(b []byte) (out []Link, err error) {
	if len(b)%linkLen != 0 {
		return nil, fmt.Errorf("%d bytes are no list of links", len(b))
	}
	for ; len(b) > 0; b = b[linkLen:] {
		l := Link{RTT: binary.BigEndian.Uint32(b[keyLen:]), Rate: binary.BigEndian.Uint64(b[keyLen+4:])}
		if l.Peer, err = PeerID(b[:keyLen]); err != nil {
			return nil, err
		}
		if n := len(out); l.RTT == 0 || n > 0 && out[n-1].Peer >= l.Peer {
			return nil, errors.New("links want a round trip each, and to be in the order of their keys")
		}
		out = append(out, l)
	}
	return out, nil
}
