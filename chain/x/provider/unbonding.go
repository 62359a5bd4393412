package provider

import (
	"context"
	"errors"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// unbonding is stake that was withdrawn. It weighs in no draw, backs nothing, and comes back once its time is
// over. So nobody is drawn by stake that it has for a block.
type unbonding struct {
	bank  Bank
	queue collections.Map[collections.Pair[int64, sdk.AccAddress], uint64] // by the end of its time
	of    collections.KeySet[collections.Pair[sdk.AccAddress, int64]]
}

// maxUnbonded is how many withdrawals a block pays back, and laterMs after how long one that could not be
// is tried again.
const (
	maxUnbonded = 100
	laterMs     = 3_600_000
)

// hold keeps amount utally of an account until a protocol time.
func (u unbonding) hold(ctx context.Context, account sdk.AccAddress, until int64, amount uint64) error {
	at := collections.Join(until, account)
	had, err := u.queue.Get(ctx, at)
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return err
	}
	return errors.Join(u.queue.Set(ctx, at, had+amount), u.of.Set(ctx, collections.Join(account, until))) // no overflow: it is part of the supply
}

// Unbonding returns what of an account's stake waits to come back, in utally.
func (u unbonding) Unbonding(ctx context.Context, account sdk.AccAddress) (sum uint64, err error) {
	err = u.of.Walk(ctx, collections.NewPrefixedPairRange[sdk.AccAddress, int64](account), func(at collections.Pair[sdk.AccAddress, int64]) (bool, error) {
		amount, err := u.queue.Get(ctx, collections.Join(at.K2(), account))
		sum += amount // no overflow: it is part of the supply
		return false, err
	})
	return sum, err
}

// payUnbonded pays back what has been held for its time.
func (u unbonding) payUnbonded(ctx context.Context) error {
	due, err := u.first(ctx, collections.NewPrefixUntilPairRange[int64, sdk.AccAddress](module.Now(ctx)), maxUnbonded)
	if err != nil {
		return err
	}
	for _, x := range due {
		account, until := x.Key.K2(), x.Key.K1()
		err := module.Attempt(ctx, func(ctx context.Context) error { return u.pay(ctx, account, until, x.Value) })
		if err == nil {
			continue
		}
		// It stops no block, and others' not either: it is tried again an hour later.
		if err := errors.Join(u.forget(ctx, account, until), u.hold(ctx, account, module.Now(ctx)+laterMs, x.Value),
			module.Emit(ctx, &providerv1.EventStuck{Account: account.String(), Reason: err.Error()})); err != nil {
			return err
		}
	}
	return nil
}

func (u unbonding) forget(ctx context.Context, account sdk.AccAddress, until int64) error {
	return errors.Join(u.queue.Remove(ctx, collections.Join(until, account)), u.of.Remove(ctx, collections.Join(account, until)))
}

func (u unbonding) pay(ctx context.Context, account sdk.AccAddress, until int64, amount uint64) error {
	if err := u.bank.SendCoinsFromModuleToAccount(ctx, Name, account, coin.Of(amount)); err != nil {
		return errorsmod.Wrapf(err, "pay back %d utally of stake to %s", amount, account)
	}
	return errors.Join(u.forget(ctx, account, until),
		module.Emit(ctx, &providerv1.EventUnbonded{Account: account.String(), Amount: amount}))
}

// first returns the first entries of the queue within a range, at most so many; 0: all.
func (u unbonding) first(ctx context.Context, within collections.Ranger[collections.Pair[int64, sdk.AccAddress]], most int) (out []collections.KeyValue[collections.Pair[int64, sdk.AccAddress], uint64], err error) {
	err = u.queue.Walk(ctx, within, func(at collections.Pair[int64, sdk.AccAddress], amount uint64) (bool, error) {
		out = append(out, collections.KeyValue[collections.Pair[int64, sdk.AccAddress], uint64]{Key: at, Value: amount})
		return len(out) == most, nil
	})
	return out, err
}

// check returns what is held in all, and an error unless the index names each entry once.
func (u unbonding) check(ctx context.Context) (sum uint64, err error) {
	all, err := u.first(ctx, nil, 0)
	for _, x := range all {
		in, e := u.of.Has(ctx, collections.Join(x.Key.K2(), x.Key.K1()))
		if e == nil && !in {
			e = errors.New("a withdrawal is not indexed by its account")
		}
		sum, err = sum+x.Value, errors.Join(err, e)
	}
	named, e := module.First(ctx, u.of, nil, len(all)+1)
	if e == nil && len(named) != len(all) {
		e = errors.New("the index of withdrawals names one too many")
	}
	return sum, errors.Join(err, e)
}
