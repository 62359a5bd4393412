package p2p

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/tally-network/tally/store"
)

func idOf(t testing.TB, n uint16) peer.ID {
	t.Helper()
	id, err := PeerID(append(make([]byte, 30), byte(n>>8), byte(n)))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestLinksAreSeenByWhatComes(t *testing.T) {
	const ms = time.Millisecond
	at := func(d time.Duration) time.Time { return time.Unix(1000, 0).Add(d) }
	id := idOf(t, 1)
	for name, x := range map[string]struct {
		do   func(l *links)
		want Link
	}{
		"one block": {func(l *links) {
			l.begin(id, at(0))(at(10*ms), at(100*ms), 1_000_000)
		}, Link{id, 10_000, 10_000_000}},
		"two at once share the link": {func(l *links) {
			a, b := l.begin(id, at(0)), l.begin(id, at(0))
			a(at(10*ms), at(100*ms), 1_000_000)
			b(at(20*ms), at(200*ms), 1_000_000)
		}, Link{id, 10_000 + 10_000/8, 10_000_000}},
		"little tells no rate": {func(l *links) {
			l.begin(id, at(0))(at(10*ms), at(11*ms), 100)
		}, Link{id, 10_000, 0}},
		"nothing for long": {func(l *links) {
			l.begin(id, at(0))(at(10*ms), at(100*ms), 1_000_000)
			l.begin(id, at(0))(time.Time{}, at(5000*ms), 0)
		}, Link{id, 10_000, 8_750_000}},
		"a rate is told though it goes on": {func(l *links) {
			l.begin(id, at(0))
			l.begin(id, at(0))(at(10*ms), at(1000*ms), maxSample)
		}, Link{id, 10_000, maxSample}},
		"the fastest trip counts at once, a slower one by an eighth": {func(l *links) {
			l.begin(id, at(0))(at(80*ms), at(80*ms), 0)
			l.begin(id, at(0))(at(16*ms), at(16*ms), 0)
			l.begin(id, at(0))(at(24*ms), at(24*ms), 0)
		}, Link{id, 17_000, 0}},
		"absurd times": {func(l *links) {
			l.begin(id, at(0))(at(-5*ms), at(-5*ms), 1<<20)
		}, Link{id, 1, 1 << 20 * 1_000_000}},
	} {
		l := &links{}
		x.do(l)
		if got := l.of[id].Link; got != x.want {
			t.Errorf("%s: %+v, want %+v", name, got, x.want)
		}
	}
}

// However many peers are asked, so many are remembered, and those that were asked last.
func TestLinksAreBounded(t *testing.T) {
	l := &links{}
	for n := range uint16(3 * maxLinks) {
		now := time.Unix(int64(n), 0)
		l.begin(idOf(t, n), now)(now, now, 1)
		l.begin(idOf(t, 0), now)(now, now, 1)
	}
	if len(l.of) != maxLinks || l.of[idOf(t, 0)] == nil || l.of[idOf(t, 3*maxLinks-1)] == nil || l.of[idOf(t, 1)] != nil {
		t.Errorf("%d are remembered", len(l.of))
	}
}

// Blocks that have come tell how fast their peer is; who asks is told. What strangers give tells nothing.
func TestLinksOfTransfers(t *testing.T) {
	a, b, c := newHost(t, 1), newHost(t, 2), newHost(t, 3)
	know(t, b, a)
	know(t, c, b)
	from, to := newStore(t), newStore(t)
	r := put(t, from, noisy(2*store.BlockSize))
	a.ServeBlocks(from, everybody)
	b.ServeLinks()
	if err := to.Fetch(soon(t), store.Request{Ref: r, Pin: "test", Sources: []store.Source{b.Source(a.ID())}}); err != nil {
		t.Fatal(err)
	}
	got, err := c.LinksOf(soon(t), b.ID())
	if err != nil || len(got) != 1 || got[0].Peer != a.ID() || got[0].RTT == 0 || got[0].Rate == 0 || !slices.Equal(got, b.Links()) {
		t.Errorf("it is told %+v: %v", got, err)
	}
	if own := c.Links(); len(own) != 1 || own[0].Peer != b.ID() || own[0].Rate != 0 {
		t.Errorf("by asking it has seen %+v", own)
	}
	if _, err := b.LinksOf(soon(t), a.ID()); err == nil {
		t.Error("who serves none was asked")
	}
	b.door.mu.Lock()
	delete(b.door.dialled, a.ID())
	b.door.mu.Unlock()
	b.links.of = nil
	if _, err := b.Source(a.ID()).Block(soon(t), r.CID); err != nil || len(b.Links()) > 0 {
		t.Errorf("of a stranger it has seen %+v: %v", b.Links(), err)
	}
}

func FuzzLinks(f *testing.F) {
	f.Add(encodeLinks([]Link{{idOf(f, 1), 5, 6}, {idOf(f, 2), 7, 0}}))
	f.Add(make([]byte, linkLen))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, in []byte) {
		if all, err := decodeLinks(in); err == nil && !bytes.Equal(encodeLinks(all), in) {
			t.Fatal("the list reads back different")
		}
	})
}

func TestLinksThatAreRefused(t *testing.T) {
	one, two := Link{idOf(t, 1), 5, 6}, Link{idOf(t, 2), 5, 6}
	for name, b := range map[string][]byte{
		"cut off":       encodeLinks([]Link{one})[:linkLen-1],
		"twice":         encodeLinks([]Link{one, one}),
		"in disorder":   encodeLinks([]Link{two, one}),
		"no round trip": encodeLinks([]Link{{idOf(t, 1), 0, 6}}),
	} {
		if got, err := decodeLinks(b); err == nil {
			t.Errorf("%s: taken for %+v", name, got)
		}
	}
	if got, err := decodeLinks(encodeLinks([]Link{one, two})); err != nil || !slices.Equal(got, []Link{one, two}) {
		t.Errorf("%+v, %v", got, err)
	}
	all := make([]Link, maxLinks)
	for i := range all {
		all[i] = Link{idOf(t, uint16(i)), 1, 1}
	}
	if n := len(encodeLinks(all)); n > linksOf.MaxResponse {
		t.Errorf("%d links take %d bytes", len(all), n)
	}
}
