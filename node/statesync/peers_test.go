package statesync

import (
	"context"
	"testing"

	abci "github.com/cometbft/cometbft/abci/types"
	cmtcfg "github.com/cometbft/cometbft/config"
	"github.com/cometbft/cometbft/p2p"
	cmtsync "github.com/cometbft/cometbft/proto/tendermint/statesync"
	"github.com/cometbft/cometbft/proxy"
	cmtstatesync "github.com/cometbft/cometbft/statesync"
	"golang.org/x/time/rate"

	"cosmossdk.io/log/v2"
)

// caller is a peer that notes what it is sent.
type caller struct {
	p2p.Peer
	id  p2p.ID
	got []p2p.Envelope
}

// ID implements p2p.Peer.
func (p *caller) ID() p2p.ID { return p.id }

// Send implements p2p.Peer.
func (p *caller) Send(e p2p.Envelope) bool {
	p.got = append(p.got, e)
	return true
}

// A peer that withholds a chunk is left, with all that it offers; one that answers is not.
func TestPeersThatWithholdChunks(t *testing.T) {
	o := newOffers(cmtstatesync.NewReactor(*cmtcfg.DefaultStateSyncConfig(), &restorer{}, &restorer{}, cmtstatesync.NopMetrics()))
	offer := func(height uint64) *cmtsync.SnapshotsResponse {
		return &cmtsync.SnapshotsResponse{Height: height, Chunks: 2, Hash: []byte{1}}
	}
	for name, x := range map[string]struct {
		answers func(i int) *cmtsync.ChunkResponse // to a request, or nil
		left    bool
	}{
		"nothing":       {func(int) *cmtsync.ChunkResponse { return nil }, true},
		"another chunk": {func(int) *cmtsync.ChunkResponse { return &cmtsync.ChunkResponse{Height: 1, Chunk: []byte{1}} }, true},
		"that it lacks it": {func(int) *cmtsync.ChunkResponse {
			return &cmtsync.ChunkResponse{Height: 1, Index: 1, Missing: true}
		}, true},
		"late": {func(i int) *cmtsync.ChunkResponse {
			if i%maxUnanswered != maxUnanswered-1 {
				return nil
			}
			return &cmtsync.ChunkResponse{Height: 1, Index: 1, Chunk: []byte{1}}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			peer := &caller{id: p2p.ID(name)}
			if !o.hears(peer.id, offer(1)) {
				t.Fatal("a first offer does not count")
			}
			for i := range 4 * maxUnanswered {
				askedPeer{peer, o}.Send(p2p.Envelope{Message: &cmtsync.ChunkRequest{Height: 1, Index: 1}})
				if a := x.answers(i); a != nil {
					o.Receive(p2p.Envelope{Src: peer, Message: a})
				}
			}
			if left := len(peer.got) == maxUnanswered; left != x.left || o.hears(peer.id, offer(2)) == x.left {
				t.Errorf("asked %d times", len(peer.got))
			}
		})
	}
	for height := range uint64(2 * maxOffers) {
		if heard := o.hears("many", offer(height+1)); heard != (height < maxOffers) {
			t.Errorf("offer %d: %v", height, heard)
		}
	}
	if !o.hears("many", offer(1)) {
		t.Error("an offer does not count again")
	}
}

// onlySnapshots is the application as a node that gives snapshots asks it.
type onlySnapshots struct {
	proxy.AppConnSnapshot
	*Snapshots
}

// ListSnapshots implements proxy.AppConnSnapshot.
func (s onlySnapshots) ListSnapshots(context.Context, *abci.RequestListSnapshots) (*abci.ResponseListSnapshots, error) {
	return s.List()
}

// LoadSnapshotChunk implements proxy.AppConnSnapshot.
func (s onlySnapshots) LoadSnapshotChunk(_ context.Context, r *abci.RequestLoadSnapshotChunk) (*abci.ResponseLoadSnapshotChunk, error) {
	return s.Load(r)
}

// Strangers that ask for chunks without end take no other's turn: each waits in line, and what there is not costs no turn.
func TestChunksAreGivenInTurn(t *testing.T) {
	c := chain(t)
	s, err := Open(t.TempDir(), 1, c.CommitMultiStore(), log.NewTestLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	s.Take(c.Height())
	s.taking.Wait()
	given, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	there := &cmtsync.ChunkRequest{Height: given.Snapshots[0].Height, Format: given.Snapshots[0].Format}
	r := cmtstatesync.NewReactor(*cmtcfg.DefaultStateSyncConfig(), onlySnapshots{Snapshots: s}, nil, cmtstatesync.NopMetrics())
	g := NewGiver(r, s).(*giver)
	const atOnce = 3
	g.turns = rate.NewLimiter(0, atOnce) // nobody else's turn comes
	if err := g.Start(); err != nil {
		t.Fatal(err)
	}
	peer := &caller{id: "stranger"}
	ask := func(m *cmtsync.ChunkRequest) *cmtsync.ChunkResponse {
		peer.got = nil
		g.Receive(p2p.Envelope{Src: peer, ChannelID: cmtstatesync.ChunkChannel, Message: m})
		if len(peer.got) == 0 {
			return nil
		}
		return peer.got[0].Message.(*cmtsync.ChunkResponse)
	}
	for range 10 {
		for _, m := range []cmtsync.ChunkRequest{{Height: 7777}, {Height: there.Height, Format: 9}, {Height: there.Height, Format: there.Format, Index: 1}} {
			if a := ask(&m); a == nil || !a.Missing {
				t.Fatalf("%v: %v", &m, a)
			}
		}
	}
	g.Receive(p2p.Envelope{Src: peer, ChannelID: cmtstatesync.ChunkChannel, Message: &cmtsync.ChunkResponse{Height: 1, Chunk: []byte{1}}})
	for range atOnce {
		if a := ask(there); a == nil || a.Missing {
			t.Fatal(a)
		}
	}
	g.turns.SetLimit(0.01)
	for range 10 { // whoever comes and goes fills no line for others
		if g.wait() {
			t.Fatal("waited for minutes")
		}
	}
	g.turns.SetLimit(1000)
	for range 10 { // in place of being refused
		if a := ask(there); a == nil || a.Missing {
			t.Fatal(a)
		}
	}
	g.turns = rate.NewLimiter(1e-9, 1)
	ask(there)
	if err := g.Stop(); err != nil {
		t.Fatal(err)
	}
	if a := ask(there); a != nil {
		t.Fatalf("a node that has stopped gives %v", a)
	}
	for _, c := range g.GetChannels() {
		if c.RecvMessageCapacity > maxRequest || c.ID == cmtstatesync.ChunkChannel && c.SendQueueCapacity > 1 {
			t.Errorf("channel %x takes %d bytes, and keeps %d answers", c.ID, c.RecvMessageCapacity, c.SendQueueCapacity)
		}
	}
}
