package reserve

import (
	"context"
	"errors"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/reserve"
	reservev1 "github.com/tally-network/tally/gen/tally/reserve/v1"
)

// enter closes the last epoch if it is over. It returns the epoch of the block.
func (k *Keeper) enter(ctx context.Context) (reserve.Epoch, error) {
	number, _, err := k.now(ctx)
	if err != nil {
		return reserve.Epoch{}, err
	}
	open, err := k.open.Get(ctx)
	if err != nil || open.Number == number {
		return epochOf(open), err
	}
	if open.Credited > 0 {
		if err := k.close(ctx, epochOf(open)); err != nil {
			return reserve.Epoch{}, err
		}
	}
	e := reserve.Epoch{Number: number}
	return e, k.open.Set(ctx, epochToProto(e))
}

// close pays what an epoch pays: to the pools, and into pots.
func (k *Keeper) close(ctx context.Context, e reserve.Epoch) error {
	p, err := k.payout(ctx, &e)
	if err != nil {
		return err
	}
	t, err := k.totals.Get(ctx)
	if err != nil {
		return err
	}
	rounding, owed := t.Rounding, p.Owed()
	p.Insurance += rounding // no overflow: all of this is held
	t.Owed, t.Jackpot, t.Insurance, t.Rounding = t.Owed+owed-rounding, t.Jackpot+p.Jackpot, t.Insurance+p.Insurance, 0
	for _, pool := range []struct {
		name   string
		amount uint64
	}{{k.pools.Jackpot, p.Jackpot}, {k.pools.Insurance, p.Insurance}} {
		if pool.amount == 0 {
			continue
		}
		if err := k.SendCoinsFromModuleToModule(ctx, Name, pool.name, coin.Of(pool.amount)); err != nil {
			return errorsmod.Wrapf(err, "pay %d utally of the reserve to %s", pool.amount, pool.name)
		}
	}
	c := payoutToProto(e.Number, &p)
	if owed > 0 {
		err = k.closed.Set(ctx, e.Number, c)
	}
	return errors.Join(err, k.totals.Set(ctx, t), module.Emit(ctx, &reservev1.EventClosed{
		Epoch: e.Number, Credited: e.Credited, Seats: c.Seats.Pay, Drilling: c.Drilling.Pay, Joining: c.Joining.Pay,
		Jackpot: p.Jackpot, Insurance: p.Insurance,
	}))
}

// payout returns what an epoch pays if it ends now.
func (k *Keeper) payout(ctx context.Context, e *reserve.Epoch) (reserve.Payout, error) {
	params, err := k.rules.Get(ctx)
	if err != nil {
		return reserve.Payout{}, err
	}
	held, err := k.held(ctx)
	if err != nil {
		return reserve.Payout{}, err
	}
	return rulesOf(params).Close(held, e)
}

// count changes the totals.
func (k *Keeper) count(ctx context.Context, change func(*reservev1.Totals)) error {
	t, err := k.totals.Get(ctx)
	if err != nil {
		return err
	}
	change(&t)
	return k.totals.Set(ctx, t)
}

// settle reckons what an account has earned in its last epoch, if that is over. The caller stores the account.
func (k *Keeper) settle(ctx context.Context, a *reservev1.Account, now int64) error {
	if a.Epoch == now {
		return nil
	}
	epoch, weights := a.Epoch, weightsOf(a.Weights)
	a.Epoch, a.Weights = now, reservev1.Weights{}
	if weights == ([reserve.Kinds]uint64{}) {
		return nil
	}
	c, err := k.closed.Get(ctx, epoch)
	if errors.Is(err, collections.ErrNotFound) { // it paid nothing
		return nil
	} else if err != nil {
		return err
	}
	p, rounding := payoutOf(&c), uint64(0)
	for kind := range p.Pots {
		pay, rest, err := p.Pots[kind].Take(weights[kind])
		if err != nil {
			return err
		}
		if kind == int(reserve.Seats) {
			if pay, err = k.share(ctx, a.Account, pay); err != nil {
				return err
			}
		}
		a.Due, rounding = a.Due+pay, rounding+rest // no overflow: all of it is held
	}
	if p.Left() {
		err = k.closed.Set(ctx, epoch, payoutToProto(epoch, &p))
	} else {
		err = k.closed.Remove(ctx, epoch)
	}
	if rounding > 0 {
		err = errors.Join(err, k.count(ctx, func(t *reservev1.Totals) { t.Rounding += rounding }))
	}
	return err
}

// settleMember reckons what the member has earned for which an account's power counts. It may have gone, or make no more blocks.
func (k *Keeper) settleMember(ctx context.Context, account sdk.AccAddress, now int64) error {
	member, err := k.MemberOf(ctx, account)
	if err != nil || member == nil || member.Equals(account) {
		return err
	}
	m, err := k.get(ctx, member)
	if err != nil {
		return err
	}
	return errors.Join(k.settle(ctx, &m, now), k.put(ctx, member, m))
}

// share passes on what of a reward for seats belongs to those whose power counts for a validator, and returns the rest.
func (k *Keeper) share(ctx context.Context, validator string, pay uint64) (uint64, error) {
	account, err := address.Parse(validator)
	if err != nil || pay == 0 {
		return 0, err
	}
	rest, err := k.Share(ctx, account, pay)
	if err != nil || rest == pay {
		return rest, err
	}
	if err := k.SendCoinsFromModuleToModule(ctx, Name, k.pools.Seats, coin.Of(pay-rest)); err != nil {
		return 0, errorsmod.Wrapf(err, "pass on %d utally of rewards", pay-rest)
	}
	return rest, k.count(ctx, func(t *reservev1.Totals) { t.Owed, t.Claimed = t.Owed-(pay-rest), t.Claimed+(pay-rest) })
}

// earn counts weights of an account in the epoch under way, and work.
func (k *Keeper) earn(ctx context.Context, account sdk.AccAddress, e reserve.Epoch, micro uint64, w [reserve.Kinds]uint64) error {
	if err := e.Count(micro, w); err != nil {
		return err
	}
	err := k.open.Set(ctx, epochToProto(e))
	if w == ([reserve.Kinds]uint64{}) {
		return err
	}
	a, e1 := k.get(ctx, account)
	if err := errors.Join(err, e1, k.settle(ctx, &a, e.Number)); err != nil {
		return err
	}
	own := weightsOf(a.Weights)
	for kind := range w {
		own[kind] += w[kind] // no overflow: less than the epoch's
	}
	a.Weights = weightsToProto(own)
	return k.accounts.Set(ctx, account, a)
}

// Credited counts work that an account was credited with, by what it was credited with before; in millionths of a
// ut. Whatever goes wrong with rewards holds up no settlement.
func (k *Keeper) Credited(ctx context.Context, account sdk.AccAddress, drilling bool, micro, before uint64) error {
	return k.attempt(ctx, account, func(ctx context.Context) error { return k.credited(ctx, account, drilling, micro, before) })
}

// attempt counts what an account has earned, and tells if it could not. Gas that runs out is no trouble of rewards:
// otherwise whoever settles with too little would take them from others.
func (k *Keeper) attempt(ctx context.Context, account sdk.AccAddress, count func(context.Context) error) error {
	err := module.Attempt(ctx, count)
	if err == nil || sdk.UnwrapSDKContext(ctx).GasMeter().IsPastLimit() {
		return err
	}
	return module.Emit(ctx, &reservev1.EventUncounted{Account: account.String(), Reason: err.Error()})
}

func (k *Keeper) credited(ctx context.Context, account sdk.AccAddress, drilling bool, micro, before uint64) error {
	if held, err := k.held(ctx); err != nil || held == 0 {
		return err
	}
	e, err := k.enter(ctx)
	if err != nil {
		return err
	}
	params, err := k.rules.Get(ctx)
	if err != nil {
		return err
	}
	w := [reserve.Kinds]uint64{reserve.Joining: rulesOf(params).First(micro, before)}
	if drilling {
		w[reserve.Drilling] = micro
	}
	return k.earn(ctx, account, e, micro, w)
}

// EndBlock counts who has made a block in which something happened, once in an epoch.
func (k *Keeper) EndBlock(ctx context.Context) error {
	if _, fresh, err := k.Value(ctx); err != nil || !fresh {
		return err
	}
	if held, err := k.held(ctx); err != nil || held == 0 {
		return err
	}
	account, votes, err := k.Seat(ctx, sdk.UnwrapSDKContext(ctx).BlockHeader().ProposerAddress)
	if err != nil {
		return err // no block has a proposer that is no validator
	}
	return k.attempt(ctx, account, func(ctx context.Context) error { return k.made(ctx, account, votes) })
}

// made counts a block of a validator with such a part of the votes.
func (k *Keeper) made(ctx context.Context, account sdk.AccAddress, votes uint64) error {
	e, err := k.enter(ctx)
	if err != nil {
		return err
	}
	a, err := k.get(ctx, account)
	if err != nil || votes == 0 || a.Epoch == e.Number && a.Weights.Seats > 0 {
		return err
	}
	return k.earn(ctx, account, e, 0, [reserve.Kinds]uint64{reserve.Seats: votes})
}

// Claim pays an account what it has earned in epochs that are over.
func (k *Keeper) Claim(ctx context.Context, account sdk.AccAddress) (uint64, error) {
	e, err := k.enter(ctx)
	if err != nil {
		return 0, err
	}
	a, err := k.get(ctx, account)
	if err != nil {
		return 0, err
	}
	if err := k.settle(ctx, &a, e.Number); err != nil {
		return 0, err
	}
	if err := k.settleMember(ctx, account, e.Number); err != nil {
		return 0, err
	}
	shared, err := k.Take(ctx, account)
	if err != nil {
		return 0, err
	}
	if a.Due == 0 && shared == 0 {
		return 0, errorsmod.Wrapf(ErrNothing, "%s has earned nothing in epochs that are over: tally query reserve account shows what it has a part in", account)
	}
	pay := a.Due
	a.Due = 0
	if err := k.put(ctx, account, a); err != nil {
		return 0, err
	}
	if pay > 0 {
		if err := k.SendCoinsFromModuleToAccount(ctx, Name, account, coin.Of(pay)); err != nil {
			return 0, errorsmod.Wrapf(err, "pay %d utally of rewards", pay)
		}
	}
	return pay + shared, errors.Join(
		k.count(ctx, func(t *reservev1.Totals) { t.Owed, t.Claimed = t.Owed-pay, t.Claimed+pay }),
		module.Emit(ctx, &reservev1.EventClaimed{Account: account.String(), Amount: pay + shared}))
}
