package module

import (
	"context"
	"errors"

	"github.com/cosmos/gogoproto/proto"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/core/money"
)

// Payer sends what a module's account holds.
type Payer interface {
	SendCoinsFromModuleToAccount(ctx context.Context, from string, to sdk.AccAddress, coins sdk.Coins) error
}

// Unbonding is stake or bond that was withdrawn from a module. It counts in no draw, can still be slashed where a module
// does so, and comes back once its time is over. So nobody is drawn by stake that it has for a block.
type Unbonding struct {
	bank   Payer
	module string                                                           // whose account holds it
	queue  collections.Map[collections.Pair[int64, sdk.AccAddress], uint64] // by the end of its time
	of     collections.KeySet[collections.Pair[sdk.AccAddress, int64]]
	told   UnbondingEvents
	May    func(ctx context.Context, account sdk.AccAddress) error // nil, or why an account's has to wait longer
}

// UnbondingEvents are what a module tells of stake that comes back, or cannot.
type UnbondingEvents struct {
	Paid  func(account string, amount uint64) proto.Message
	Stuck func(account, reason string) proto.Message
}

// UnbondingOf declares what a module holds, kept under two prefixes of its store.
func UnbondingOf(sb *collections.SchemaBuilder, queue, of int, bank Payer, module string, told UnbondingEvents) Unbonding {
	return Unbonding{
		bank: bank, module: module, told: told,
		queue: collections.NewMap(sb, collections.NewPrefix(queue), "unbonding",
			collections.PairKeyCodec(collections.Int64Key, sdk.AccAddressKey), collections.Uint64Value),
		of: collections.NewKeySet(sb, collections.NewPrefix(of), "unbonding_of",
			collections.PairKeyCodec(sdk.AccAddressKey, collections.Int64Key)),
	}
}

const (
	maxUnbonded = 100       // withdrawals that a block pays back
	laterMs     = 3_600_000 // until one that could not be is tried again
	maxSlashed  = 100       // withdrawals of an account that a slash reaches, the oldest
)

// Hold keeps amount utally of an account until a protocol time.
func (u Unbonding) Hold(ctx context.Context, account sdk.AccAddress, until int64, amount uint64) error {
	at := collections.Join(until, account)
	had, err := u.queue.Get(ctx, at)
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return err
	}
	return errors.Join(u.queue.Set(ctx, at, had+amount), u.of.Set(ctx, collections.Join(account, until))) // no overflow: it is part of the supply
}

// Of returns what of an account's stake waits to come back, in utally.
func (u Unbonding) Of(ctx context.Context, account sdk.AccAddress) (sum uint64, err error) {
	err = u.of.Walk(ctx, collections.NewPrefixedPairRange[sdk.AccAddress, int64](account), func(at collections.Pair[sdk.AccAddress, int64]) (bool, error) {
		amount, err := u.queue.Get(ctx, collections.Join(at.K2(), account))
		sum += amount // no overflow: it is part of the supply
		return false, err
	})
	return sum, err
}

// Pay pays back what has been held for its time.
func (u Unbonding) Pay(ctx context.Context) error {
	due, err := u.first(ctx, collections.NewPrefixUntilPairRange[int64, sdk.AccAddress](Now(ctx)), maxUnbonded)
	if err != nil {
		return err
	}
	for _, x := range due {
		account, until := x.Key.K2(), x.Key.K1()
		err := Attempt(ctx, func(ctx context.Context) error { return u.pay(ctx, account, until, x.Value) })
		if err == nil {
			continue
		}
		// It stops no block, and others' not either: it is tried again an hour later.
		if err := errors.Join(u.forget(ctx, account, until), u.Hold(ctx, account, Now(ctx)+laterMs, x.Value),
			Emit(ctx, u.told.Stuck(account.String(), err.Error()))); err != nil {
			return err
		}
	}
	return nil
}

func (u Unbonding) forget(ctx context.Context, account sdk.AccAddress, until int64) error {
	return errors.Join(u.queue.Remove(ctx, collections.Join(until, account)), u.of.Remove(ctx, collections.Join(account, until)))
}

func (u Unbonding) pay(ctx context.Context, account sdk.AccAddress, until int64, amount uint64) error {
	if u.May != nil {
		if err := u.May(ctx, account); err != nil {
			return err
		}
	}
	if err := u.bank.SendCoinsFromModuleToAccount(ctx, u.module, account, coin.Of(amount)); err != nil {
		return errorsmod.Wrapf(err, "pay back %d utally to %s", amount, account)
	}
	return errors.Join(u.forget(ctx, account, until),
		Emit(ctx, u.told.Paid(account.String(), amount)))
}

// All returns all that is held, in the order in which it comes back.
func (u Unbonding) All(ctx context.Context) ([]collections.KeyValue[collections.Pair[int64, sdk.AccAddress], uint64], error) {
	return u.first(ctx, nil, 0)
}

// UnbondingPage returns a page of an account's withdrawals, each as told makes it of its time and amount.
func UnbondingPage[T any](ctx context.Context, u Unbonding, account sdk.AccAddress, asked *query.PageRequest, told func(until int64, amount uint64) T) ([]T, *query.PageResponse, error) {
	return query.CollectionPaginate(ctx, u.of, asked,
		func(at collections.Pair[sdk.AccAddress, int64], _ collections.NoValue) (T, error) {
			amount, err := u.queue.Get(ctx, collections.Join(at.K2(), account))
			return told(at.K2(), amount), err
		}, query.WithCollectionPaginationPairPrefix[sdk.AccAddress, int64](account))
}

// Full reports whether an account has as many withdrawals as a slash reaches, but for the one that a slash may add itself. Another
// would escape it.
func (u Unbonding) Full(ctx context.Context, account sdk.AccAddress) (bool, error) {
	held, err := First(ctx, u.of, collections.NewPrefixedPairRange[sdk.AccAddress, int64](account), maxSlashed)
	return len(held) >= maxSlashed-1, err
}

// Slash takes a share of what an account has held, and returns how much it took. The caller sends it.
func (u Unbonding) Slash(ctx context.Context, account sdk.AccAddress, bps uint32) (sum uint64, err error) {
	held, err := First(ctx, u.of, collections.NewPrefixedPairRange[sdk.AccAddress, int64](account), maxSlashed)
	for _, at := range held {
		amount, e := u.queue.Get(ctx, collections.Join(at.K2(), account))
		if err = errors.Join(err, e); err != nil {
			return 0, err
		}
		taken := money.Part(amount, bps)
		if sum += taken; taken == amount {
			err = u.forget(ctx, account, at.K2())
		} else {
			err = u.queue.Set(ctx, collections.Join(at.K2(), account), amount-taken)
		}
	}
	return sum, err
}

// first returns the first entries of the queue within a range, at most so many; 0: all.
func (u Unbonding) first(ctx context.Context, within collections.Ranger[collections.Pair[int64, sdk.AccAddress]], most int) (out []collections.KeyValue[collections.Pair[int64, sdk.AccAddress], uint64], err error) {
	err = u.queue.Walk(ctx, within, func(at collections.Pair[int64, sdk.AccAddress], amount uint64) (bool, error) {
		out = append(out, collections.KeyValue[collections.Pair[int64, sdk.AccAddress], uint64]{Key: at, Value: amount})
		return len(out) == most, nil
	})
	return out, err
}

// Check returns what is held in all, and an error unless the index names each entry once.
func (u Unbonding) Check(ctx context.Context) (sum uint64, err error) {
	all, err := u.first(ctx, nil, 0)
	for _, x := range all {
		in, e := u.of.Has(ctx, collections.Join(x.Key.K2(), x.Key.K1()))
		if e == nil && !in {
			e = errors.New("a withdrawal is not indexed by its account")
		}
		sum, err = sum+x.Value, errors.Join(err, e)
	}
	named, e := First(ctx, u.of, nil, len(all)+1)
	if e == nil && len(named) != len(all) {
		e = errors.New("the index of withdrawals names one too many")
	}
	return sum, errors.Join(err, e)
}
