package dispute_test

import (
	"crypto/ed25519"
	"testing"
	"time"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/dispute"
	"github.com/tally-network/tally/chain/x/sessions"
	"github.com/tally-network/tally/core/canon"
	game "github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/session"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// served is a model of which nobody has more than its root: what it gives the games of core/dispute and of model/lm show.
var served = game.Model{Layers: 2, Chunks: 4, Steps: canon.Hash{1}, Assets: canon.Hash{2}}

// sold is a chain with a session in which p0 has served alice, whose replies others dispute.
type sold struct {
	*chaintest.Chain
	terms              session.Terms
	p0, alice, watcher chaintest.Account
}

const stake, cap = 1_000_000_000, 1_000_000

func newSold(t *testing.T) *sold {
	t.Helper()
	s := &sold{p0: chaintest.Named("p0"), alice: chaintest.Named("alice"), watcher: chaintest.Named("watcher")}
	s.Chain = chaintest.New(t, chaintest.Fund(stake, "alice", "watcher", "p0", "v0"), chaintest.Validator("v0", 10*stake), chaintest.Provider("p0", "v0", stake, 1000))
	now := module.Now(s.Ctx())
	s.terms = session.Terms{
		Chain: chaintest.ChainID, Consumer: session.Party{Account: s.alice.String(), Key: s.alice.PeerKey()}, Provider: session.Party{Account: s.p0.String(), Key: s.p0.PeerKey()},
		Model: served.Root(), Prices: session.Prices{Reply: 1_000_000}, CheckBps: 10_000, Credit: session.Credit{First: 1, Cap: cap}, Escrow: cap, OpenBy: now + 60_000, End: now + 3_600_000,
	}
	id := s.terms.ID()
	s.Deliver(s.alice, wire.OpenSession(&s.terms, ed25519.Sign(s.p0.Peer, id[:])))
	return s
}

// roots are what a receipt of 100 and 200 tokens commits to: three chunks, three pages of tokens.
var roots = game.Chunks{Chunks: []canon.Hash{{1}, {2}, {3}}, Tokens: []canon.Hash{{4}, {5}, {6}}}

func (s *sold) receipt(edit ...func(*session.Receipt)) (r session.Receipt, signature []byte) {
	r = session.Receipt{Session: s.terms.ID(), Number: 1, Model: served.Root(), Prompt: 100, Reply: 200, Tokens: canon.Root(roots.Tokens), Pages: game.SaltedPages(canon.Root(roots.Chunks), s.p0.PeerKey())}
	for _, e := range edit {
		e(&r)
	}
	id := r.ID()
	return r, ed25519.Sign(s.p0.Peer, id[:])
}

func (s *sold) open(by chaintest.Account, edit ...func(*session.Receipt)) *disputev1.MsgOpenReply {
	r, signature := s.receipt(edit...)
	return wire.DisputeReply(by.String(), &r, signature, &served)
}

func (s *sold) game(t *testing.T, id uint64) (game.Game, disputev1.Parties) {
	t.Helper()
	g, p, err := s.App.Dispute.Game(s.Ctx(), id)
	if err != nil {
		t.Fatal(err)
	}
	return g, p
}

func move(by chaintest.Account, id uint64, number int, m game.Move) *disputev1.MsgMove {
	return &disputev1.MsgMove{Player: by.String(), Dispute: id, Number: uint32(number), Move: game.EncodeMove(m)}
}

// Who is silent loses: a provider its reserve, a challenger its bond.
func TestRepliesAreDisputed(t *testing.T) {
	for name, x := range map[string]struct {
		play  func(s *sold)
		loser game.Side
	}{
		"by a provider that is gone": {func(*sold) {}, game.Defender},
		"by a challenger that is gone": {func(s *sold) {
			s.Deliver(s.p0, move(s.p0, 1, 1, &roots))
		}, game.Challenger},
		"by a provider that concedes": {func(s *sold) {
			s.Deliver(s.p0, move(s.p0, 1, 1, &game.Concede{}))
		}, game.Defender},
		"by a provider whose seat nobody may take": {func(s *sold) {
			s.NextBlock(11 * time.Minute)
			s.NextBlock(0)
			s.Refuse(dispute.ErrSubstitute, s.alice, &disputev1.MsgSubstitute{Substitute: s.alice.String(), Dispute: 1, Side: disputev1.SIDE_DEFENDER})
		}, game.Defender},
		"by a provider that stops": {func(s *sold) {
			s.Deliver(s.p0, move(s.p0, 1, 1, &roots))
			s.Deliver(s.watcher, move(s.watcher, 1, 2, &game.Pick{Index: 1}))
			s.Refuse(dispute.ErrMove, s.p0, move(s.p0, 1, 3, &game.Steps{Values: make([]canon.Hash, 3), Pages: make([]canon.Hash, 2)}))
		}, game.Defender},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSold(t)
			before := s.Balance(s.watcher.Address)
			s.Deliver(s.watcher, s.open(s.watcher))
			if g, p := s.game(t, 1); g.Stage != game.PostChunks || p.Defender != s.p0.String() || p.Bond != session.DefaultRules.DisputeBond || p.Reply == nil {
				t.Fatalf("%v, %+v", g.Stage, p)
			}
			x.play(s)
			s.NextBlock(time.Hour)
			s.NextBlock(0)
			g, _ := s.game(t, 1)
			if g.Loser != x.loser {
				t.Fatalf("%v has lost: %s", g.Loser, g.Reason)
			}
			s.NextBlock(48 * time.Hour) // the session ends, by its time or by the conviction
			s.NextBlock(48 * time.Hour)
			s.NextBlock(0)
			p, err := s.App.Provider.Get(s.Ctx(), s.p0.Address)
			if err != nil {
				t.Fatal(err)
			}
			after, bond := s.Balance(s.watcher.Address), session.DefaultRules.DisputeBond
			switch x.loser {
			case game.Defender:
				if p.Stake != stake-2*cap || after != before+2*cap*4/10 {
					t.Errorf("the provider has %d, the challenger %d of %d", p.Stake, after, before)
				}
			default:
				if p.Stake != stake || p.Reserved != 0 || after != before-bond {
					t.Errorf("the provider has %d, %d reserved; the challenger %d of %d", p.Stake, p.Reserved, after, before)
				}
			}
		})
	}
}

// A game that nobody needs any more is forgotten with its session, and one that is open holds the session.
func TestGamesAboutRepliesAreForgotten(t *testing.T) {
	s := newSold(t)
	s.Deliver(s.watcher, s.open(s.watcher))
	s.Refuse(dispute.ErrOpening, s.watcher, s.open(s.watcher)) // the same again
	s.Deliver(s.alice, s.open(s.alice))
	if g, _ := s.game(t, 2); g.Stage != game.PostChunks {
		t.Errorf("alice's game is at %v", g.Stage)
	}
	s.NextBlock(time.Hour)
	s.NextBlock(0)
	if g, _ := s.game(t, 2); g.Stage != game.Over || g.Loser != game.Nobody {
		t.Errorf("alice's game is at %v, %v has lost", g.Stage, g.Loser)
	}
	s.Refuse(sessions.ErrEvent, s.p0, s.open(s.p0, func(r *session.Receipt) { r.Number = 2 })) // it is convicted
	for range 6 {
		s.NextBlock(24 * time.Hour)
	}
	if _, _, err := s.App.Dispute.Game(s.Ctx(), 1); err == nil {
		t.Error("the game is known for ever")
	}
}

func TestRepliesThatCannotBeDisputed(t *testing.T) {
	s := newSold(t)
	s.Refuse(dispute.ErrOpening, s.p0, s.open(s.p0))
	s.Refuse(sessions.ErrNoSession, s.watcher, s.open(s.watcher, func(r *session.Receipt) { r.Session = canon.Hash{9} }))
	s.Refuse(sessions.ErrEvent, s.watcher, s.open(s.watcher, func(r *session.Receipt) { r.Kind = session.OfCheck }))
	s.Refuse(sessions.ErrEvent, s.watcher, s.open(s.watcher, func(r *session.Receipt) { r.Reply = 0 }))
	s.Refuse(sessions.ErrEvent, s.watcher, s.open(s.watcher, func(r *session.Receipt) { r.Reply = session.MaxTokens }))
	s.Refuse(sessions.ErrEvent, s.watcher, s.open(s.watcher, func(r *session.Receipt) { r.Model = canon.Hash{8} }))
	forged := s.open(s.watcher)
	forged.Receipt.Signature[3] ^= 1
	s.Refuse(sessions.ErrEvent, s.watcher, forged)
	for _, model := range [][]byte{nil, make([]byte, 4000), canon.Marshal(&game.Model{Layers: game.MaxLayers, Chunks: game.MaxChunks})} {
		bent := s.open(s.watcher)
		bent.Model = model
		s.Refuse(dispute.ErrOpening, s.watcher, bent)
	}
}
