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
// # Store
//
// Parts of leases and settlements are canonical encodings under keys that begin
// with the order's id. [wire.SettlementKey] is that of a settlement, which outsiders
// prove.
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

// Name is the module's name and that of the account that holds fees.
const Name = wire.SettlementStore

// Keeper holds the leases.
type Keeper struct {
	bank   Bank
	escrow Escrow
	stakes Stakes
	power  Power
	games  Games // see Tell

	rules module.Rules[workv1.Params]

	// Parts of leases; an absent unit or merge is a blank one.
	fixed   collections.Map[[]byte, []byte]
	mutable collections.Map[[]byte, []byte]
	merges  collections.Map[part, []byte]
	units   collections.Map[part, []byte]

	// What few events need: the checkpoints of a unit's receipt, whose last the unit
	// holds, what counts of its earlier attempts, and the inputs of a merge.
	checkpoints collections.Map[part, []byte]
	past        collections.Map[collections.Pair[[]byte, uint64], []byte] // by order, unit and attempt: see attemptOf
	inputs      collections.Map[part, []byte]
	asked       collections.Map[string, uint64]                           // open questions to a custodian, in all leases
	slashPaid   collections.Map[collections.Pair[[]byte, string], uint64] // utally out of bonds, by order and account

	settlements collections.Map[[]byte, []byte]
	changed     collections.Map[[]byte, uint64] // height of the newest change of a lease that is not settled

	// Indexes: when time must pass for a lease, in which phase it is, who leads
	// it while it is not settled, who takes part. That for which time could not pass is
	// in late instead.
	wakes   collections.KeySet[wake]
	late    module.Retries[part] // a unit, or itself
	phases  collections.KeySet[collections.Pair[int32, []byte]]
	leads   collections.KeySet[collections.Pair[string, []byte]]
	parties collections.KeySet[collections.Triple[string, bool, []byte]] // account, settled, order
}

// wake is a time, and the order and unit, or itself, for which it must pass.
type wake = collections.Triple[int64, []byte, uint32]

// part names a unit or a round of an order.
type part = collections.Pair[[]byte, uint32]

// NewKeeper returns a keeper over the given store.
func NewKeeper(cdc codec.BinaryCodec, svc store.KVStoreService, bank Bank, e Escrow, s Stakes, p Power) *Keeper {
	sb := collections.NewSchemaBuilder(svc)
	parts := collections.PairKeyCodec(collections.BytesKey, collections.Uint32Key)
	k := &Keeper{
		bank: bank, escrow: e, stakes: s, power: p,
		rules:   module.RulesOf(sb, 0, 11, codec.CollValue[workv1.Params](cdc), checkParams),
		fixed:   collections.NewMap(sb, collections.NewPrefix(1), "fixed", collections.BytesKey, collections.BytesValue),
		mutable: collections.NewMap(sb, collections.NewPrefix(2), "mutable", collections.BytesKey, collections.BytesValue),
		merges:  collections.NewMap(sb, collections.NewPrefix(3), "merges", parts, collections.BytesValue),
		units:   collections.NewMap(sb, collections.NewPrefix(4), "units", parts, collections.BytesValue),
		settlements: collections.NewMap(sb, collections.NewPrefix(wire.SettlementPrefix), "settlements",
			collections.BytesKey, collections.BytesValue),
		wakes: collections.NewKeySet(sb, collections.NewPrefix(6), "wakes",
			collections.TripleKeyCodec(collections.Int64Key, collections.BytesKey, collections.Uint32Key)),
		phases: collections.NewKeySet(sb, collections.NewPrefix(7), "phases",
			collections.PairKeyCodec(collections.Int32Key, collections.BytesKey)),
		leads: collections.NewKeySet(sb, collections.NewPrefix(8), "leads",
			collections.PairKeyCodec(collections.StringKey, collections.BytesKey)),
		parties: collections.NewKeySet(sb, collections.NewPrefix(9), "parties",
			collections.TripleKeyCodec(collections.StringKey, collections.BoolKey, collections.BytesKey)),
	}
	k.late = module.RetriesOf(sb, 15, parts)
	k.checkpoints = collections.NewMap(sb, collections.NewPrefix(13), "checkpoints", parts, collections.BytesValue)
	k.inputs = collections.NewMap(sb, collections.NewPrefix(14), "inputs", parts, collections.BytesValue)
	k.past = collections.NewMap(sb, collections.NewPrefix(16), "past",
		collections.PairKeyCodec(collections.BytesKey, collections.Uint64Key), collections.BytesValue)
	k.slashPaid = collections.NewMap(sb, collections.NewPrefix(17), "slash_paid",
		collections.PairKeyCodec(collections.BytesKey, collections.StringKey), collections.Uint64Value)
	k.asked = collections.NewMap(sb, collections.NewPrefix(18), "asked", collections.StringKey, collections.Uint64Value)
	k.changed = collections.NewMap(sb, collections.NewPrefix(19), "changed", collections.BytesKey, collections.Uint64Value)
	module.Seal(sb)
	return k
}

// Tell names who is told of disputes that leases end. That needs this keeper, and is made
// after it.
func (k *Keeper) Tell(g Games) { k.games = g }

// Rules returns the rules for new leases.
func (k *Keeper) Rules(ctx context.Context) (job.Params, error) {
	p, err := k.rules.Get(ctx)
	return wire.ParamsFromProto(p), err
}

// Final returns the state root that a settled order ended in; ErrNoLease if it is
// not settled, or no round of it was merged.
func (k *Keeper) Final(ctx context.Context, order canon.Hash) (canon.Hash, error) {
	b, err := k.settlements.Get(ctx, order[:])
	if errors.Is(err, collections.ErrNotFound) {
		return canon.Hash{}, errorsmod.Wrapf(ErrNoLease, "order %s is not settled", order)
	}
	if err != nil {
		return canon.Hash{}, err
	}
	var s job.Settlement
	if err := canon.Unmarshal(b, &s); err != nil {
		return canon.Hash{}, err
	}
	if s.Final.IsZero() {
		return s.Final, errorsmod.Wrapf(ErrNoLease, "order %s ended before a round was merged", order)
	}
	return s.Final, nil
}

// Led returns how many leases that are not settled an account leads.
func (k *Keeper) Led(ctx context.Context, account string) (n int, err error) {
	err = k.leads.Walk(ctx, collections.NewPrefixedPairRange[string, []byte](account),
		func(collections.Pair[string, []byte]) (bool, error) {
			n++
			return false, nil
		})
	return n, err
}
