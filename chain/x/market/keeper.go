// Package market is the book of offers and orders, and the escrow.
//
// An offer is a validator's standing ask; an order is a consumer's signed
// request. Its maximum price is locked when it is posted, with a deposit beside it.
// The deposit returns at its end unless its files could not be had. At the end of each
// block orders that nobody met in time are refunded, and those whose turn it is meet the
// best offer (core/book); what its price leaves of the maximum
// goes back, and a lease begins. A lease pays, burns and refunds out of the order's escrow.
//
// An order that nobody meets waits, ever longer. Of those that wait a block tries 64 again once something
// on offer has improved. A block's work is bounded: where there are too many orders, offers or providers
// for it, they take turns.
//
// An offer is taken from the block after its own on, so that nobody makes it for an order that it
// sees coming, and no more once it has ended. Whom a lease draws follows from a later block than its match.
//
// An order that takes part in auctions waits for a clearing in place of an offer, and x/auction has its lease begun by
// [Module.Lends].
//
// Invariants: the escrows of all orders add up to the balance of the module's
// account; an open order has its maximum price and its deposit in escrow, an ended one nothing.
// Every open order has one turn, or waits for auctions. The trades are the last ones, without a gap.
//
// Call [NewKeeper] and [NewModule]. x/work takes money out of an order's escrow by
// [Keeper.Pay], [Keeper.Burn] and [Keeper.Tax], and ends it by [Keeper.Settle]. [Keeper.Tell] names who takes the orders of
// auctions.
//
// Source: core/book for the rule of the match; docs/spec/lease.md and market.md.
package market

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
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
)

// Name is the module's name and that of the account that holds the escrow.
const Name = "market"

// Keeper holds the book and the escrow.
type Keeper struct {
	bank     Bank
	burner   Burner
	projects Projects

	offers   collections.Map[sdk.AccAddress, marketv1.Offer]
	ends     collections.KeySet[collections.Pair[int64, sdk.AccAddress]] // of offers that end
	trades   trades
	orders   collections.Map[[]byte, []byte] // id → job.Order
	postings collections.Map[[]byte, marketv1.Posting]
	next     collections.Sequence
	numbers  collections.Map[uint64, []byte] // number → id

	// Indexes of orders, by number.
	byStatus   collections.KeySet[collections.Pair[int32, uint64]]
	byConsumer collections.KeySet[collections.Pair[sdk.AccAddress, uint64]]
	expiries   collections.KeySet[collections.Pair[int64, uint64]] // open ones

	refunded collections.KeySet[collections.Pair[int64, uint64]] // that ended without a lease, by when
	turns    turns
	cursor   collections.Item[[]byte] // account from which the next block looks at offers, if there are too many for one
	auction  Auction
}

// NewKeeper returns a keeper over the given store.
func NewKeeper(cdc codec.BinaryCodec, svc store.KVStoreService, bank Bank, burner Burner, projects Projects) *Keeper {
	sb := collections.NewSchemaBuilder(svc)
	k := &Keeper{
		bank: bank, burner: burner, projects: projects,
		offers: collections.NewMap(sb, collections.NewPrefix(0), "offers",
			sdk.AccAddressKey, codec.CollValue[marketv1.Offer](cdc)),
		orders: collections.NewMap(sb, collections.NewPrefix(1), "orders",
			collections.BytesKey, collections.BytesValue),
		postings: collections.NewMap(sb, collections.NewPrefix(2), "postings",
			collections.BytesKey, codec.CollValue[marketv1.Posting](cdc)),
		next: collections.NewSequence(sb, collections.NewPrefix(3), "next"),
		numbers: collections.NewMap(sb, collections.NewPrefix(4), "numbers",
			collections.Uint64Key, collections.BytesValue),
		byStatus: collections.NewKeySet(sb, collections.NewPrefix(5), "by_status",
			collections.PairKeyCodec(collections.Int32Key, collections.Uint64Key)),
		byConsumer: collections.NewKeySet(sb, collections.NewPrefix(6), "by_consumer",
			collections.PairKeyCodec(sdk.AccAddressKey, collections.Uint64Key)),
		expiries: collections.NewKeySet(sb, collections.NewPrefix(7), "expiries",
			collections.PairKeyCodec(collections.Int64Key, collections.Uint64Key)),
		refunded: collections.NewKeySet(sb, collections.NewPrefix(11), "refunded",
			collections.PairKeyCodec(collections.Int64Key, collections.Uint64Key)),
		turns: turns{
			of: collections.NewMap(sb, collections.NewPrefix(8), "turns", collections.Uint64Key, collections.BytesValue),
			queue: collections.NewKeySet(sb, collections.NewPrefix(9), "turn_queue",
				collections.TripleKeyCodec(collections.BoolKey, collections.Int64Key, collections.Uint64Key)),
		},
		ends: collections.NewKeySet(sb, collections.NewPrefix(12), "offer_ends",
			collections.PairKeyCodec(collections.Int64Key, sdk.AccAddressKey)),
		trades: trades{
			of:   collections.NewMap(sb, collections.NewPrefix(13), "trades", collections.Uint64Key, codec.CollValue[marketv1.Trade](cdc)),
			next: collections.NewSequence(sb, collections.NewPrefix(14), "next_trade"),
		},
		cursor: collections.NewItem(sb, collections.NewPrefix(10), "cursor", collections.BytesValue),
	}
	module.Seal(sb)
	return k
}

// Tell names who takes the orders that ask for auctions.
func (k *Keeper) Tell(a Auction) { k.auction = a }

// PostOrder enters a checked order and locks its maximum price and a deposit.
func (k *Keeper) PostOrder(ctx context.Context, o *job.Order, deposit uint64) (canon.Hash, error) {
	id := o.ID()
	consumer, err := address.Parse(o.Consumer)
	if err != nil {
		return id, err
	}
	switch has, err := k.orders.Has(ctx, id[:]); {
	case err != nil:
		return id, err
	case has:
		return id, errorsmod.Wrap(ErrPosted, id.String())
	}
	price := o.Conditions.MaxPrice
	locked := price + deposit
	if locked < price || locked > coin.MaxSupply {
		return id, errorsmod.Wrapf(ErrOrder, "a maximum price of %d utally and a deposit of %d: more than there is", price, deposit)
	}
	if err := k.bank.SendCoinsFromAccountToModule(ctx, consumer, Name, coin.Of(locked)); err != nil {
		return id, errorsmod.Wrapf(err, "lock the maximum price of %d utally and a deposit of %d", price, deposit)
	}
	if err := k.projects.Open(ctx, o); err != nil {
		return id, err
	}
	number, err := k.next.Next(ctx)
	if err != nil {
		return id, err
	}
	c := sdk.UnwrapSDKContext(ctx)
	now := module.Now(ctx)
	p := marketv1.Posting{
		Number: number, Status: marketv1.STATUS_OPEN, Escrow: locked, Deposit: deposit,
		PostedAt: now, Height: c.BlockHeight(), ExpiresAt: now + o.Conditions.Expires, Auction: o.Conditions.Auction,
	}
	if err := k.enter(ctx, id, o, p); err != nil {
		return id, err
	}
	if p.Auction {
		if err := k.auction.Enter(ctx, number, o); err != nil {
			return id, err
		}
	}
	return id, module.Emit(ctx, &marketv1.EventPosted{Order: id.String(), Consumer: o.Consumer, Locked: locked, Deposit: deposit, ExpiresAt: p.ExpiresAt})
}

// enter stores an order that is not in the book, with its indexes.
func (k *Keeper) enter(ctx context.Context, id canon.Hash, o *job.Order, p marketv1.Posting) error {
	consumer, err := address.Parse(o.Consumer)
	if err != nil {
		return err
	}
	b, err := canon.Encoded(o)
	if err != nil {
		return fmt.Errorf("store order %s: %w", id, err)
	}
	if err := k.orders.Set(ctx, id[:], b); err != nil {
		return err
	}
	if err := k.numbers.Set(ctx, p.Number, id[:]); err != nil {
		return err
	}
	if err := k.byConsumer.Set(ctx, collections.Join(consumer, p.Number)); err != nil {
		return err
	}
	return k.put(ctx, id, marketv1.Posting{}, p)
}

// put stores what became of an order, and keeps the indexes.
func (k *Keeper) put(ctx context.Context, id canon.Hash, before, after marketv1.Posting) (err error) {
	if before.Status != after.Status {
		if before.Status != 0 {
			if err := k.byStatus.Remove(ctx, collections.Join(int32(before.Status), before.Number)); err != nil {
				return err
			}
		}
		if err := k.byStatus.Set(ctx, collections.Join(int32(after.Status), after.Number)); err != nil {
			return err
		}
		if after.Absent, err = k.waits(ctx, before, after); err != nil {
			return err
		}
		if leaseless(after.Status) {
			if err := k.refunded.Set(ctx, collections.Join(module.Now(ctx), after.Number)); err != nil {
				return err
			}
		}
	}
	return k.postings.Set(ctx, id[:], after)
}

// waits enters an order that is open now among those that wait, or removes one that is no more. One that takes part in
// auctions has no turn, and may have had sellers that were absent.
func (k *Keeper) waits(ctx context.Context, before, after marketv1.Posting) (absent uint32, err error) {
	absent = after.Absent
	expiry := collections.Join(after.ExpiresAt, after.Number)
	switch {
	case after.Status == marketv1.STATUS_OPEN && after.Auction:
		err = k.expiries.Set(ctx, expiry)
	case after.Status == marketv1.STATUS_OPEN:
		err = errors.Join(k.expiries.Set(ctx, expiry), k.turns.set(ctx, after.Number, turn{At: after.PostedAt}))
	case before.Status == marketv1.STATUS_OPEN && after.Auction:
		absent, err = k.auction.Leave(ctx, after.Number)
		err = errors.Join(err, k.expiries.Remove(ctx, expiry))
	case before.Status == marketv1.STATUS_OPEN:
		err = errors.Join(k.expiries.Remove(ctx, expiry), k.turns.remove(ctx, after.Number))
	}
	return absent, err
}

// leaseless reports whether an order has ended without a lease.
func leaseless(s marketv1.Status) bool {
	return s == marketv1.STATUS_CANCELLED || s == marketv1.STATUS_EXPIRED
}

// Forget removes an order that has ended. If it had a lease, x/work calls it with the lease's end.
func (k *Keeper) Forget(ctx context.Context, id canon.Hash) error {
	o, p, err := k.Order(ctx, id)
	if err != nil {
		return err
	}
	if p.Status != marketv1.STATUS_SETTLED && !leaseless(p.Status) {
		return fmt.Errorf("order %s is %s: it has not ended", id, wire.NameOf(p.Status))
	}
	consumer, err := address.Parse(o.Consumer)
	if err != nil {
		return err
	}
	return errors.Join(
		k.orders.Remove(ctx, id[:]), k.postings.Remove(ctx, id[:]), k.numbers.Remove(ctx, p.Number),
		k.byConsumer.Remove(ctx, collections.Join(consumer, p.Number)), k.byStatus.Remove(ctx, collections.Join(int32(p.Status), p.Number)),
		k.projects.Forget(ctx, id),
	)
}

// Order returns an order and what became of it, or ErrNoOrder.
func (k *Keeper) Order(ctx context.Context, id canon.Hash) (o job.Order, p marketv1.Posting, err error) {
	b, err := k.orders.Get(ctx, id[:])
	if errors.Is(err, collections.ErrNotFound) {
		return o, p, errorsmod.Wrap(ErrNoOrder, id.String())
	}
	if err != nil {
		return o, p, err
	}
	if err := canon.Unmarshal(b, &o); err != nil {
		return o, p, err
	}
	p, err = k.postings.Get(ctx, id[:])
	return o, p, err
}

// byNumber returns the id of an order.
func (k *Keeper) byNumber(ctx context.Context, n uint64) (canon.Hash, error) {
	b, err := k.numbers.Get(ctx, n)
	if err != nil {
		return canon.Hash{}, err
	}
	return canon.HashOf(b)
}
