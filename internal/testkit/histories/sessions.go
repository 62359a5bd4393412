package histories

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"slices"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/session"
	sessionsv1 "github.com/tally-network/tally/gen/tally/sessions/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// servers are the providers that hold sessions.
var servers = slices.Concat(worktest.Providers, worktest.Rivals)

// served is the model of which replies are disputed. Nobody has it, so nobody answers.
var served = dispute.Model{Layers: 1, Chunks: 1}

// ofSessions are what consumers and providers of language models do, and strangers with what these have signed.
func ofSessions() []func(*writer) (chaintest.Account, sdk.Msg) {
	return []func(*writer) (chaintest.Account, sdk.Msg){
		(*writer).lists, (*writer).opens, (*writer).opens,
		onSession(func(w *writer, by chaintest.Account, s *held) sdk.Msg {
			return wire.FundSession(s.consumer.String(), s.ID(), 1+w.Uint64N(tally))
		}),
		onSession(func(w *writer, by chaintest.Account, s *held) sdk.Msg {
			v := session.Voucher{Session: s.ID(), Number: 1 + w.Uint64N(9), Amount: w.Uint64N(2 * tally), Root: canon.Root(nil)}
			return wire.RedeemVoucher(by.String(), &v, s.signed(s.consumer, v.ID()))
		}),
		onSession(func(w *writer, by chaintest.Account, s *held) sdk.Msg {
			r := session.Release{Session: s.ID(), Number: 1 + w.Uint64N(9), Amount: 1 + w.Uint64N(tally)}
			return wire.ReturnEscrow(by.String(), &r, s.signed(s.provider, r.ID()))
		}),
		onSession(func(w *writer, by chaintest.Account, s *held) sdk.Msg { return wire.CloseSession(by.String(), s.ID()) }),
		onSession(func(w *writer, by chaintest.Account, s *held) sdk.Msg {
			f := session.Final{Session: s.ID(), Amount: s.Claimed() + w.Uint64N(tally)}
			return wire.FinishSession(s.provider.String(), &f, s.signed(s.consumer, f.ID()))
		}),
		onSession(func(w *writer, by chaintest.Account, s *held) sdk.Msg {
			e := session.TwoReceipts{By: by.String()}
			for i := range e.Receipts {
				e.Receipts[i] = session.Receipt{Session: s.ID(), Reply: uint64(i)}
				e.Signatures[i] = s.signed(s.provider, e.Receipts[i].ID())
			}
			return wire.ShowReceipts(&e)
		}),
		onSession(func(w *writer, by chaintest.Account, s *held) sdk.Msg {
			r := session.Receipt{Session: s.ID(), Number: w.Uint64N(3), Model: served.Root(), Prompt: 1, Reply: w.Uint64N(3), Tokens: canon.Sum("histories"), Pages: canon.Sum("histories")}
			return wire.DisputeReply(by.String(), &r, s.signed(s.provider, r.ID()), &served)
		}),
	}
}

// held is a session that the chain knows, and who holds it.
type held struct {
	session.Session
	consumer, provider chaintest.Account
}

// signed signs by the key that somebody has in sessions: that of its peer.
func (s *held) signed(by chaintest.Account, id canon.Hash) []byte {
	return ed25519.Sign(by.Peer, id[:])
}

// onSession returns an act about one of the sessions that the chain knows; there may be none. Mostly a side sends it.
func onSession(act func(w *writer, by chaintest.Account, s *held) sdk.Msg) func(*writer) (chaintest.Account, sdk.Msg) {
	return func(w *writer) (chaintest.Account, sdk.Msg) {
		provider := w.one(servers...)
		r, err := sessionsv1.NewQueryClient(w.Chain).SessionsOf(context.Background(), &sessionsv1.QuerySessionsOfRequest{Account: provider.String()})
		if err != nil {
			w.tb.Fatal(err)
		}
		if len(r.Sessions) == 0 {
			return provider, nil
		}
		s := held{provider: provider}
		if s.Session, err = wire.SessionFromProto(&r.Sessions[w.IntN(len(r.Sessions))]); err != nil {
			w.tb.Fatal(err)
		}
		for _, name := range folk {
			if who := chaintest.Named(name); who.String() == s.Terms.Consumer.Account {
				s.consumer = who
			}
		}
		by := []chaintest.Account{s.consumer, provider, w.one(folk...)}[w.IntN(3)]
		m := act(w, by, &s)
		switch m.(type) { // these have one sender
		case *sessionsv1.MsgFund:
			by = s.consumer
		case *sessionsv1.MsgFinish:
			by = provider
		}
		return by, m
	}
}

// lists lets a provider list some models.
func (w *writer) lists() (chaintest.Account, sdk.Msg) {
	who := w.one(servers...)
	var all []session.Listing
	for i := range w.IntN(4) {
		name := fmt.Sprint("llm ", i)
		all = append(all, session.Listing{
			Model: canon.Sum("histories", []byte(name)), Name: name, Credit: session.Credit{First: 1, Cap: 1 + w.Uint64N(tally)}, Context: 1 + w.Uint64N(9_999), Parallel: 1,
		})
	}
	return who, wire.ListModels(who.String(), all)
}

// opens lets somebody open a session, for a minute or many.
func (w *writer) opens() (chaintest.Account, sdk.Msg) {
	consumer, provider := w.one(folk...), w.one(servers...)
	now := module.Now(w.Ctx())
	party := func(a chaintest.Account) session.Party { return session.Party{Account: a.String(), Key: a.PeerKey()} }
	t := session.Terms{
		Chain: chaintest.ChainID, Consumer: party(consumer), Provider: party(provider), Model: served.Root(), CheckBps: w.Uint64N(3) * 5_000,
		Credit: session.Credit{First: 1, Cap: 1 + w.Uint64N(tally)}, Escrow: 1 + w.Uint64N(5*tally), OpenBy: now + 60_000, End: now + 60_001 + w.Int64N(3_600_000), Nonce: w.Uint64(),
	}
	id := t.ID()
	return consumer, wire.OpenSession(&t, ed25519.Sign(provider.Peer, id[:]))
}
