// Package sessions holds the sessions of consumers with providers of language models, and what providers offer to serve.
//
// What happens to a session core/session says: a message or the clock is an event, and this module does what its effects
// ask for. Escrow is in the module's account; stake is reserved in the registry. A session that is over is forgotten after a while.
//
// A provider lists what it serves. Its listings stand for a week, and are shown while it could begin a session. They bind
// nobody: a session begins by terms that both sides have signed.
//
// Call [NewKeeper], [Keeper.Tell] and [NewModule]. Games about replies are played in x/dispute. While one is, its session is not settled.
//
// Invariants: the escrows add up to the balance of the module's account. Each session keeps to core/session, is indexed by
// both of its sides, and is due once, or is tried again. Each listing is indexed by its model and its name, and each offer lapses once.
//
// Source: docs/spec/sessions.md, docs/adr/0066-sessions.md.
package sessions

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	"cosmossdk.io/core/store"
	errorsmod "cosmossdk.io/errors"

	"github.com/cosmos/cosmos-sdk/codec"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/session"
	sessionsv1 "github.com/tally-network/tally/gen/tally/sessions/v1"
)

// Name is the module's name, and that of the account that holds the escrow.
const Name = "sessions"

// Keeper holds sessions, offers and records.
type Keeper struct {
	Needs
	games    Games // see Tell
	rules    module.Rules[sessionsv1.Params]
	sessions collections.Map[[]byte, []byte] // canonical encodings, by id
	byParty  collections.KeySet[collections.Pair[sdk.AccAddress, []byte]]
	due      collections.KeySet[collections.Pair[int64, []byte]] // when time changes something
	late     module.Retries[[]byte]                              // those for which it could not, in place of due
	records  collections.Map[sdk.AccAddress, sessionsv1.Record]
	offers
}

// NewKeeper returns a keeper over the given store.
func NewKeeper(cdc codec.BinaryCodec, svc store.KVStoreService, n Needs) *Keeper {
	sb := collections.NewSchemaBuilder(svc)
	k := &Keeper{
		Needs:    n,
		rules:    module.RulesOf(sb, 0, 1, codec.CollValue[sessionsv1.Params](cdc), mayReplace),
		sessions: collections.NewMap(sb, collections.NewPrefix(2), "sessions", collections.BytesKey, collections.BytesValue),
		byParty:  collections.NewKeySet(sb, collections.NewPrefix(3), "by_party", collections.PairKeyCodec(sdk.AccAddressKey, collections.BytesKey)),
		due:      collections.NewKeySet(sb, collections.NewPrefix(4), "due", collections.PairKeyCodec(collections.Int64Key, collections.BytesKey)),
		late:     module.RetriesOf(sb, 5, collections.BytesKey),
		records:  collections.NewMap(sb, collections.NewPrefix(6), "records", sdk.AccAddressKey, codec.CollValue[sessionsv1.Record](cdc)),
		offers: offers{
			all:     collections.NewMap(sb, collections.NewPrefix(7), "offers", sdk.AccAddressKey, codec.CollValue[sessionsv1.Offer](cdc)),
			byModel: collections.NewKeySet(sb, collections.NewPrefix(8), "by_model", collections.PairKeyCodec(collections.BytesKey, sdk.AccAddressKey)),
			byName:  collections.NewKeySet(sb, collections.NewPrefix(9), "by_name", collections.PairKeyCodec(collections.StringKey, sdk.AccAddressKey)),
			lapses:  collections.NewKeySet(sb, collections.NewPrefix(10), "lapses", collections.PairKeyCodec(collections.Int64Key, sdk.AccAddressKey)),
		},
	}
	module.Seal(sb)
	return k
}

// DefaultParams are the rules of core/session.
func DefaultParams() sessionsv1.Params { return wire.SessionRulesToProto(session.DefaultRules) }

// CheckParams returns an error that shows what is wrong with the rules.
func CheckParams(p sessionsv1.Params) error { return wire.SessionRulesFromProto(p).Check() }

// mayReplace returns an error unless rules may take the place of others: the bounds of core/session are those of votes.
func mayReplace(_, p sessionsv1.Params) error { return CheckParams(p) }

// Get returns a session, or ErrNoSession.
func (k *Keeper) Get(ctx context.Context, id canon.Hash) (s session.Session, err error) {
	b, err := k.sessions.Get(ctx, id[:])
	switch {
	case errors.Is(err, collections.ErrNotFound):
		return s, errorsmod.Wrap(ErrNoSession, id.String())
	case err != nil:
		return s, err
	}
	if err := canon.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("read session %s: %w", id, err)
	}
	return s, nil
}

// Tell names who plays the disputes about replies. They are made after this keeper.
func (k *Keeper) Tell(g Games) { k.games = g }

// OpenDispute lets a game about a reply begin.
func (k *Keeper) OpenDispute(ctx context.Context, r session.Receipt, signature []byte, m dispute.Model) (c session.Contested, err error) {
	if err := k.happen(ctx, r.Session, session.OpenDispute{Receipt: r, Signature: signature}); err != nil {
		return c, err
	}
	s, err := k.Get(ctx, r.Session)
	if err != nil {
		return c, err
	}
	if c, err = s.Contest(&r, m); err != nil {
		err = errorsmod.Wrap(ErrEvent, err.Error())
	}
	return c, err
}

// CloseDispute tells what came of a game. It returns who has lost: nobody, if the provider was convicted before.
func (k *Keeper) CloseDispute(ctx context.Context, id canon.Hash, loser dispute.Side, by string) (dispute.Side, error) {
	s, err := k.Get(ctx, id)
	if err != nil {
		return loser, err
	}
	if s.Convictions.OfProvider != "" {
		loser = dispute.Nobody
	}
	return loser, k.happen(ctx, id, session.CloseDispute{Lost: loser == dispute.Defender, By: by})
}

// begin stores a session that has just begun, with its indexes.
func (k *Keeper) begin(ctx context.Context, s *session.Session) error {
	id := s.ID()
	parties, err := partiesOf(s)
	if err != nil {
		return err
	}
	for _, account := range parties {
		err = errors.Join(err, k.byParty.Set(ctx, collections.Join(account, id[:])))
	}
	return errors.Join(err, k.due.Set(ctx, collections.Join(dueAt(s), id[:])), k.put(ctx, s))
}

// forget removes a session that is over.
func (k *Keeper) forget(ctx context.Context, s *session.Session) error {
	id := s.ID()
	parties, err := partiesOf(s)
	if err != nil {
		return err
	}
	for _, account := range parties {
		err = errors.Join(err, k.byParty.Remove(ctx, collections.Join(account, id[:])))
	}
	return errors.Join(err, k.due.Remove(ctx, collections.Join(dueAt(s), id[:])), k.sessions.Remove(ctx, id[:]))
}

// put stores a session, whose indexes stand.
func (k *Keeper) put(ctx context.Context, s *session.Session) error {
	b, err := canon.Encoded(s)
	if err != nil {
		return err
	}
	id := s.ID()
	return k.sessions.Set(ctx, id[:], b)
}

// partiesOf returns the accounts of both sides.
func partiesOf(s *session.Session) (out [2]sdk.AccAddress, err error) {
	for i, p := range []session.Party{s.Terms.Consumer, s.Terms.Provider} {
		account, bad := address.Parse(p.Account)
		out[i], err = account, errors.Join(err, bad)
	}
	return out, err
}

// dueAt returns the protocol time at which time changes something: the phase, or that the session is known.
func dueAt(s *session.Session) int64 {
	if s.Phase == session.Ended {
		return s.ForgetAt()
	}
	return s.Due
}

// Reserved returns, by account, the stake that sessions reserve, in utally.
func (k *Keeper) Reserved(ctx context.Context) (map[string]uint64, error) {
	sum := map[string]uint64{}
	err := k.walk(ctx, func(s *session.Session) error {
		if r := s.Reserved(); r > 0 {
			sum[s.Terms.Provider.Account] += r // no overflow: it is part of a stake
		}
		return nil
	})
	return sum, err
}

// walk visits all sessions, by id.
func (k *Keeper) walk(ctx context.Context, visit func(*session.Session) error) error {
	return k.sessions.Walk(ctx, nil, func(id, _ []byte) (bool, error) {
		s, err := k.Get(ctx, canon.Hash(id))
		if err != nil {
			return true, err
		}
		return false, visit(&s)
	})
}
