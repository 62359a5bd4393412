// Package dispute lets core/dispute's game be played on the chain.
//
// A challenger names the work or the reply that it disputes, and locks a bond ([Keeper.Open], MsgOpenReply). The two
// sides then move in turn ([Keeper.Move]) until the referee, which is a pure function, has
// decided, or a clock has run out. Anybody who locks the same bond may take the seat of a
// side that misses an answer ([Keeper.Substitute]). The package decides nothing itself.
//
// The loser pays. A defender loses the bond behind its work, which is x/work's to take. A
// challenger loses its own, and so does every substitute of the losing side. Half of these
// goes to whoever played for the winning side, the rest to the insurance fund.
//
// The rules bound how many games about one defender's work are played at once. The others
// wait in the order in which they were opened, and their clocks stand still: see
// docs/adr/0024-queue-of-games.md. When one ends, the next begins at the end of the block.
//
// Games that are played are indexed by the time at which an answer is missed or a clock
// runs out. So a block in which none is due reads one index and writes nothing. What the
// end of a block does is bounded; what is left is done in the next. A game that is over is
// kept without what only its moves needed; the moves themselves are in the blocks.
//
// A bond is reserved of its owner's stake where that, and what its balance can spare,
// suffice; else the module's account holds it. Behind the game of an auditor that has
// reported a mismatch stands its verdict.
//
// Invariants: the bonds out of balances of the games that are not over add up to the
// balance of the module's account. Each of these games has its place in the queue of its
// defender. If it is played it has its time in the index, or is tried again
// (module.Retries), and is indexed by whose move is next, and by whether an answer is missed.
// Nobody waits for a defender of whom no game is played, unless the next is about to begin.
package dispute

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	"cosmossdk.io/core/store"
	errorsmod "cosmossdk.io/errors"

	"github.com/cosmos/cosmos-sdk/codec"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
)

// Name is the module's name and that of the account that holds the bonds.
const Name = "dispute"

// Keeper holds the games.
type Keeper struct {
	bank    Bank
	stakes  Stakes
	work    Work
	replies Replies

	rules   module.Rules[disputev1.Params]
	next    collections.Sequence
	parties collections.Map[uint64, disputev1.Parties]
	games   collections.Map[uint64, []byte]
	wakes   collections.KeySet[collections.Pair[int64, uint64]] // of games that are played
	queue   collections.KeySet[place]                           // games that are not over
	dropped collections.Map[uint64, string]                     // games whose disputes their leases have ended, and why; they end in turn
	late    module.Retries[uint64]                              // those for which time could not pass, in place of the two
	freed   collections.KeySet[string]                          // defenders of whom a game has ended, until the next have begun
	byOrder collections.KeySet[collections.Pair[[]byte, uint64]]
	turns   collections.KeySet[collections.Pair[string, uint64]] // of games that are played, by whose move is next
	missed  collections.KeySet[uint64]                           // games that are played, in which a side has missed its answer
	replied collections.KeySet[collections.Pair[[]byte, string]] // receipts of replies that are disputed, and by whom: each of these once
}

// place is where a game stands among those of its defender: the defender, whether the
// game waits, its number.
type place = collections.Triple[string, bool, uint64]

// NewKeeper returns a keeper over the given store.
func NewKeeper(cdc codec.BinaryCodec, svc store.KVStoreService, bank Bank, stakes Stakes, work Work, replies Replies) *Keeper {
	sb := collections.NewSchemaBuilder(svc)
	k := &Keeper{
		bank: bank, stakes: stakes, work: work, replies: replies,
		rules: module.RulesOf(sb, 0, 6, codec.CollValue[disputev1.Params](cdc), checkParams),
		next:  collections.NewSequence(sb, collections.NewPrefix(1), "next"),
		parties: collections.NewMap(sb, collections.NewPrefix(2), "parties",
			collections.Uint64Key, codec.CollValue[disputev1.Parties](cdc)),
		games: collections.NewMap(sb, collections.NewPrefix(3), "games", collections.Uint64Key, collections.BytesValue),
		wakes: collections.NewKeySet(sb, collections.NewPrefix(4), "wakes",
			collections.PairKeyCodec(collections.Int64Key, collections.Uint64Key)),
		byOrder: collections.NewKeySet(sb, collections.NewPrefix(5), "by_order",
			collections.PairKeyCodec(collections.BytesKey, collections.Uint64Key)),
		queue: collections.NewKeySet(sb, collections.NewPrefix(7), "queue",
			collections.TripleKeyCodec(collections.StringKey, collections.BoolKey, collections.Uint64Key)),
		freed: collections.NewKeySet(sb, collections.NewPrefix(8), "freed", collections.StringKey),
		late:  module.RetriesOf(sb, 9, collections.Uint64Key),
		turns: collections.NewKeySet(sb, collections.NewPrefix(11), "turns",
			collections.PairKeyCodec(collections.StringKey, collections.Uint64Key)),
		missed: collections.NewKeySet(sb, collections.NewPrefix(12), "missed", collections.Uint64Key),
		replied: collections.NewKeySet(sb, collections.NewPrefix(13), "replied",
			collections.PairKeyCodec(collections.BytesKey, collections.StringKey)),
		dropped: collections.NewMap(sb, collections.NewPrefix(10), "dropped", collections.Uint64Key, collections.StringValue),
	}
	module.Seal(sb)
	return k
}

// Rules returns the rules of new games.
func (k *Keeper) Rules(ctx context.Context) (dispute.Rules, error) {
	p, err := k.rules.Get(ctx)
	return wire.RulesFromProto(p), err
}

// Game returns a game and its parties, or ErrNoDispute.
func (k *Keeper) Game(ctx context.Context, id uint64) (g dispute.Game, p disputev1.Parties, err error) {
	b, err := k.games.Get(ctx, id)
	if errors.Is(err, collections.ErrNotFound) {
		return g, p, errorsmod.Wrapf(ErrNoDispute, "dispute %d", id)
	}
	if err != nil {
		return g, p, err
	}
	if err := canon.Unmarshal(b, &g); err != nil {
		return g, p, fmt.Errorf("read dispute %d: %w", id, err)
	}
	p, err = k.parties.Get(ctx, id)
	return g, p, err
}

// put stores a game, and keeps the indexes. The seats are those after; who had the turn before
// is named by was.
func (k *Keeper) put(ctx context.Context, id uint64, was, p disputev1.Parties, before, after *dispute.Game) error {
	if before != nil && before.Stage != dispute.Over {
		if err := errors.Join(
			k.queue.Remove(ctx, collections.Join3(p.Defender, before.Waiting, id)),
			k.wakes.Remove(ctx, collections.Join(before.Wake(), id)),
			k.turns.Remove(ctx, collections.Join(player(was, before.Stage.Turn()), id)),
			k.missed.Remove(ctx, id),
		); err != nil {
			return err
		}
	}
	if after.Stage != dispute.Over {
		if err := k.queue.Set(ctx, collections.Join3(p.Defender, after.Waiting, id)); err != nil {
			return err
		}
	}
	if after.Stage != dispute.Over && !after.Waiting {
		err := errors.Join(
			k.wakes.Set(ctx, collections.Join(after.Wake(), id)),
			k.turns.Set(ctx, collections.Join(player(p, after.Stage.Turn()), id)),
		)
		if err == nil && after.Missed {
			err = k.missed.Set(ctx, id)
		}
		if err != nil {
			return err
		}
	}
	b, err := canon.Encoded(after)
	if err != nil {
		return fmt.Errorf("store dispute %d: %w", id, err)
	}
	return k.games.Set(ctx, id, b)
}

// Forget removes up to so many games about an order, or the replies of a session, which are all over, and returns how many.
func (k *Keeper) Forget(ctx context.Context, order canon.Hash, most int) (int, error) {
	var gone []collections.Pair[[]byte, uint64]
	err := k.byOrder.Walk(ctx, collections.NewPrefixedPairRange[[]byte, uint64](order[:]), func(at collections.Pair[[]byte, uint64]) (bool, error) {
		gone = append(gone, at)
		return len(gone) >= most, nil
	})
	if err != nil {
		return 0, err
	}
	for _, at := range gone {
		id := at.K2()
		g, p, err := k.Game(ctx, id)
		if err == nil && g.Stage != dispute.Over {
			err = fmt.Errorf("dispute %d is not over", id)
		}
		if err == nil && p.Reply != nil {
			err = k.replied.Remove(ctx, collections.Join(p.Reply.Receipt, p.Challenger))
		}
		if err := errors.Join(err, k.byOrder.Remove(ctx, at), k.parties.Remove(ctx, id), k.games.Remove(ctx, id)); err != nil {
			return 0, err
		}
	}
	return len(gone), nil
}

// enter stores the parties of a dispute, with their index.
func (k *Keeper) enter(ctx context.Context, id uint64, p disputev1.Parties) error {
	order, err := canon.ParseHash(p.Order)
	if err != nil {
		return err
	}
	if err := k.byOrder.Set(ctx, collections.Join(order[:], id)); err != nil {
		return err
	}
	if p.Reply != nil {
		if err := k.replied.Set(ctx, collections.Join(p.Reply.Receipt, p.Challenger)); err != nil {
			return err
		}
	}
	return k.parties.Set(ctx, id, p)
}
