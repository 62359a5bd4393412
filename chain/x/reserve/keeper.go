// Package reserve pays rewards out of tokens that the chain has held since its genesis. Nothing is minted.
//
// Work that is credited, and validators that make blocks, are counted by epoch. An epoch that is over is closed
// by whatever comes next: it pays the pools, and puts what it pays to accounts into pots. An account's part
// is reckoned when its record is next touched, and paid when it claims it.
//
// Call [NewKeeper] and [NewModule]. x/power tells [Keeper.Credited] of work.
//
// Invariants: the module's account holds what is owed, and whatever else it has is owed to nobody. Pots hold
// what their accounts have still to take. What a block does is bounded, and an idle block writes nothing. Rewards for
// credited work are below what was burnt for it, whatever a vote sets.
//
// Source: docs/spec/reserve.md.
package reserve

import (
	"context"
	"errors"

	"cosmossdk.io/collections"
	"cosmossdk.io/core/store"

	"github.com/cosmos/cosmos-sdk/codec"
	sdk "github.com/cosmos/cosmos-sdk/types"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/reserve"
	reservev1 "github.com/tally-network/tally/gen/tally/reserve/v1"
)

// Name is the module's name, and that of the account that holds the reserve.
const Name = "reserve"

// Pools are the module accounts that shares of rewards go to. Seats has those of who delegates power to validators.
type Pools struct{ Jackpot, Insurance, Seats string }

// Keeper counts what is rewarded, and what is owed.
type Keeper struct {
	rules    module.Rules[reservev1.Params]
	origin   collections.Item[int64] // protocol time at which the first epoch began, ms
	length   collections.Item[int64] // of an epoch, ms
	open     collections.Item[reservev1.Epoch]
	closed   collections.Map[int64, reservev1.Closed]
	accounts collections.Map[sdk.AccAddress, reservev1.Account]
	totals   collections.Item[reservev1.Totals]

	Needs
	pools Pools
}

// NewKeeper returns a keeper over the given store.
func NewKeeper(cdc codec.BinaryCodec, svc store.KVStoreService, n Needs, pools Pools) *Keeper {
	sb := collections.NewSchemaBuilder(svc)
	k := &Keeper{
		Needs: n, pools: pools,
		rules:  module.RulesOf(sb, 0, 1, codec.CollValue[reservev1.Params](cdc), mayReplace),
		origin: collections.NewItem(sb, collections.NewPrefix(2), "origin", collections.Int64Value),
		length: collections.NewItem(sb, collections.NewPrefix(3), "length", collections.Int64Value),
		open:   collections.NewItem(sb, collections.NewPrefix(4), "open", codec.CollValue[reservev1.Epoch](cdc)),
		closed: collections.NewMap(sb, collections.NewPrefix(5), "closed", collections.Int64Key, codec.CollValue[reservev1.Closed](cdc)),
		accounts: collections.NewMap(sb, collections.NewPrefix(6), "accounts", sdk.AccAddressKey,
			codec.CollValue[reservev1.Account](cdc)),
		totals: collections.NewItem(sb, collections.NewPrefix(7), "totals", codec.CollValue[reservev1.Totals](cdc)),
	}
	module.Seal(sb)
	return k
}

// balance returns what the module's account has, in utally.
func (k *Keeper) balance(ctx context.Context) uint64 {
	return k.GetBalance(ctx, authtypes.NewModuleAddress(Name), coin.Denom).Amount.Uint64()
}

// held returns what is owed to nobody.
func (k *Keeper) held(ctx context.Context) (uint64, error) {
	t, err := k.totals.Get(ctx)
	if err != nil {
		return 0, err
	}
	return k.balance(ctx) - t.Owed, nil // the invariant
}

// now returns the number of the block's epoch, and the protocol time at which it ends.
func (k *Keeper) now(ctx context.Context) (number, ends int64, err error) {
	origin, err := k.origin.Get(ctx)
	if err != nil {
		return 0, 0, err
	}
	length, err := k.length.Get(ctx)
	if err != nil {
		return 0, 0, err
	}
	number = (module.Now(ctx) - origin) / length
	return number, origin + (number+1)*length, nil
}

// get returns the record of an account, empty if it has none.
func (k *Keeper) get(ctx context.Context, account sdk.AccAddress) (reservev1.Account, error) {
	a, err := k.accounts.Get(ctx, account)
	if errors.Is(err, collections.ErrNotFound) {
		return reservev1.Account{Account: account.String()}, nil
	}
	return a, err
}

// put stores the record of an account, or removes it if nothing is in it.
func (k *Keeper) put(ctx context.Context, account sdk.AccAddress, a reservev1.Account) error {
	if a.Due == 0 && a.Weights == (reservev1.Weights{}) {
		return k.accounts.Remove(ctx, account)
	}
	return k.accounts.Set(ctx, account, a)
}

func rulesOf(p reservev1.Params) reserve.Rules {
	return reserve.Rules{
		Halving: p.HalvingEpochs, Cap: p.Cap, Bps: [reserve.Kinds]uint32{p.SeatsBps, p.DrillingBps, p.JoiningBps},
		Jackpot: p.JackpotBps, Insurance: p.InsuranceBps, JoiningUT: p.JoiningUt,
	}
}

func weightsOf(w reservev1.Weights) [reserve.Kinds]uint64 {
	return [reserve.Kinds]uint64{w.Seats, w.Drilling, w.Joining}
}

func weightsToProto(w [reserve.Kinds]uint64) reservev1.Weights {
	return reservev1.Weights{Seats: w[reserve.Seats], Drilling: w[reserve.Drilling], Joining: w[reserve.Joining]}
}

func epochOf(e reservev1.Epoch) reserve.Epoch {
	return reserve.Epoch{Number: e.Number, Credited: e.Credited, Weights: weightsOf(e.Weights)}
}

func epochToProto(e reserve.Epoch) reservev1.Epoch {
	return reservev1.Epoch{Number: e.Number, Credited: e.Credited, Weights: weightsToProto(e.Weights)}
}

func payoutOf(c *reservev1.Closed) (p reserve.Payout) {
	for i, x := range []reservev1.Pot{c.Seats, c.Drilling, c.Joining} {
		p.Pots[i] = reserve.Pot{Pay: x.Pay, Weight: x.Weight, LeftPay: x.LeftPay, LeftWeight: x.LeftWeight}
	}
	return p
}

func payoutToProto(number int64, p *reserve.Payout) reservev1.Closed {
	c := reservev1.Closed{Number: number}
	for i, to := range []*reservev1.Pot{&c.Seats, &c.Drilling, &c.Joining} {
		x := p.Pots[i]
		*to = reservev1.Pot{Pay: x.Pay, Weight: x.Weight, LeftPay: x.LeftPay, LeftWeight: x.LeftWeight}
	}
	return c
}
