// Package work holds the leases: it applies the events of core/job to them, and does
// what follows with stakes, escrow and records.
//
// Every message, and the passing of time, is an event of core/job; apply loads
// the parts of a lease that the event may touch, applies it, stores what has
// changed and executes the effects. The package decides nothing itself.
//
// Time passes at the end of a block for the leases whose wake time has come, and
// for no others: a block in which nothing is due reads one index and writes
// nothing.
//
// Call [NewKeeper] and [NewModule]. x/market calls [Keeper.Begin]; from then on messages and the
// ends of blocks apply events, and nothing else changes a lease.
//
// # Store
//
// Parts of leases and settlements are canonical encodings under keys that begin
// with the order's id. [wire.AccumulatorKey] is that of the accumulator of all settlements,
// from which outsiders prove any of them.
//
// # Invariants
//
// Every lease keeps core/job's invariants. What escrow holds for an order is
// what its lease says. What is reserved of a peer's stake is the sum of what the
// leases reserve of it. The module's account holds the fees of open questions to
// custodians; what that of the jackpot holds is the pool.
package work

import (
	"context"
	"errors"

	"cosmossdk.io/collections"
	"cosmossdk.io/core/store"
	errorsmod "cosmossdk.io/errors"

	"github.com/cosmos/cosmos-sdk/codec"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// Name is the module's name, that of its store, and of the account that holds fees.
const Name = wire.RecordStore

// Keeper holds the leases.
type Keeper struct {
	bank      Bank
	escrow    Escrow
	stakes    Stakes
	power     Power
	games     Games                                   // see Tell
	onSettled func(context.Context, *job.Lease) error // likewise
	rules     module.Rules[workv1.Params]
	leases    leaseStore
	record    record
}

// NewKeeper returns a keeper over the given store.
func NewKeeper(cdc codec.BinaryCodec, svc store.KVStoreService, bank Bank, e Escrow, s Stakes, p Power) *Keeper {
	sb := collections.NewSchemaBuilder(svc)
	k := &Keeper{
		bank: bank, escrow: e, stakes: s, power: p,
		rules:  module.RulesOf(sb, 0, 11, codec.CollValue[workv1.Params](cdc), checkParams),
		leases: newLeaseStore(sb),
		record: newRecord(sb),
	}
	module.Seal(sb)
	return k
}

// Tell names who is told of disputes that leases end, and of leases that settle. They are made after this keeper.
func (k *Keeper) Tell(g Games, settled func(context.Context, *job.Lease) error) {
	k.games, k.onSettled = g, settled
}

// Rules returns the rules for new leases.
func (k *Keeper) Rules(ctx context.Context) (job.Params, error) {
	p, err := k.rules.Get(ctx)
	return wire.ParamsFromProto(p), err
}

// Final returns the state root that a settled order ended in; ErrNoLease if it is
// not settled, or no round of it was merged.
func (k *Keeper) Final(ctx context.Context, order canon.Hash) (canon.Hash, error) {
	s, _, err := k.settlement(ctx, order)
	if err != nil {
		return canon.Hash{}, err
	}
	if s.Final.IsZero() {
		return s.Final, errorsmod.Wrapf(ErrNoLease, "order %s ended before a round was merged", order)
	}
	return s.Final, nil
}

// Leading returns how many leases that are not settled an account leads, and what they were priced at, together.
func (k *Keeper) Leading(ctx context.Context, account string) (leases int, worth uint64, err error) {
	leases, err = countOf(ctx, k.leases.led, account)
	price, e := countOf(ctx, k.leases.worth, account)
	return leases, uint64(price), errors.Join(err, e)
}
