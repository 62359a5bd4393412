package provider

import (
	"context"
	"errors"

	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// Deposit moves amount utally from a peer's account to its stake.
func (k *Keeper) Deposit(ctx context.Context, account sdk.AccAddress, amount uint64) error {
	return k.change(ctx, account, func(p *providerv1.Peer) error { return deposit(ctx, k.bank, account, p, amount) })
}

// deposit moves amount utally from a peer's account to its stake, which the caller stores.
func deposit(ctx context.Context, bank Bank, account sdk.AccAddress, p *providerv1.Peer, amount uint64) error {
	if err := bank.SendCoinsFromAccountToModule(ctx, account, Name, coin.Of(amount)); err != nil {
		return errorsmod.Wrapf(err, "deposit %d utally of stake", amount)
	}
	p.Stake += amount // no overflow: the supply bounds what an account can send
	return nil
}

// Withdraw takes amount utally of a peer's free stake out, and holds them for the time of unbonding. A
// peer left with less than its role's minimum gets no new work.
func (k *Keeper) Withdraw(ctx context.Context, account sdk.AccAddress, amount uint64) error {
	if amount == 0 {
		return nil
	}
	params, err := k.Params(ctx)
	if err != nil {
		return err
	}
	lacks := uint64(0)
	if err := k.change(ctx, account, func(p *providerv1.Peer) error {
		err := take(p, 0, amount)
		if least := wire.LeastStake(&params, p.Roles); p.Stake < least && p.JailedUntil != wire.Forever {
			lacks = least - p.Stake
		}
		return err
	}); err != nil {
		return err
	}
	until := module.Now(ctx) + params.UnbondingMs
	if err := k.Unbonding.Hold(ctx, account, until, amount); err != nil {
		return err
	}
	return module.Emit(ctx, &providerv1.EventUnbonding{Account: account.String(), Amount: amount, Until: until, Lacks: lacks})
}

// Spare is what a bond leaves in an account, in utally: it must still pay fees.
const Spare = 1_000_000

// Means returns what an account can put up as a bond, in utally: its free stake, and
// what it could deposit besides. A peer that may get no new work has none.
func (k *Keeper) Means(ctx context.Context, account sdk.AccAddress) (uint64, error) {
	free, err := freeStake(ctx, k, account)
	if err != nil || free == nil {
		return 0, err
	}
	return *free + k.spare(ctx, account), nil // no overflow: the supply bounds both
}

// Affords reports whether an account's means suffice for a bond. It reads no balance if the free
// stake does.
func (k *Keeper) Affords(ctx context.Context, account sdk.AccAddress, bond uint64) (bool, error) {
	free, err := freeStake(ctx, k, account)
	if err != nil || free == nil {
		return false, err
	}
	return bond <= *free || bond-*free <= k.spare(ctx, account), nil
}

// freeStake returns the free stake of a peer, nil if it may get no new work.
func freeStake(ctx context.Context, k *Keeper, account sdk.AccAddress) (*uint64, error) {
	p, err := k.Get(ctx, account)
	if errors.Is(err, ErrNotRegistered) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if active, err := k.Active(ctx, p); err != nil || !active {
		return nil, err
	}
	free := p.Stake - p.Reserved
	return &free, nil
}

// spare returns what an account could deposit and still pay fees.
func (k *Keeper) spare(ctx context.Context, account sdk.AccAddress) uint64 {
	have := k.bank.SpendableCoin(ctx, account, coin.Denom).Amount.Uint64()
	return have - min(have, Spare)
}

// Reserve binds amount utally of free stake to open work. What is short comes out of
// the account's balance, and becomes stake.
func (k *Keeper) Reserve(ctx context.Context, account sdk.AccAddress, amount uint64) error {
	return k.change(ctx, account, func(p *providerv1.Peer) error {
		free := p.Stake - p.Reserved
		if short := amount - min(amount, free); short > 0 && short <= k.spare(ctx, account) {
			if err := deposit(ctx, k.bank, account, p, short); err != nil {
				return err
			}
			free = amount
		}
		if amount > free {
			return errorsmod.Wrapf(ErrFreeStake, "%s has %d utally free, %d are asked for", p.Account, free, amount)
		}
		p.Reserved += amount
		return nil
	})
}

// Release frees amount utally of reserved stake.
func (k *Keeper) Release(ctx context.Context, account sdk.AccAddress, amount uint64) error {
	return k.change(ctx, account, func(p *providerv1.Peer) error {
		if amount > p.Reserved {
			return errorsmod.Wrapf(ErrReserved, "%s has %d utally reserved, %d were to be released", p.Account, p.Reserved, amount)
		}
		p.Reserved -= amount
		return nil
	})
}

// Slash takes stake from a peer, so much out of its reserved and so much out of
// its free part (utally), and pays it out; what the payouts leave is forfeit. It refuses
// to take or pay more than there is.
func (k *Keeper) Slash(ctx context.Context, account sdk.AccAddress, reserved, free uint64, payouts []providerv1.Payout) error {
	rest := reserved + free
	err := k.change(ctx, account, func(p *providerv1.Peer) error {
		if err := take(p, reserved, free); err != nil {
			return err
		}
		for _, out := range payouts {
			if out.Amount > rest {
				return errorsmod.Wrapf(ErrPayout, "%d utally slashed from %s do not pay %d to %s", reserved+free, p.Account, out.Amount, out.Account)
			}
			rest -= out.Amount
			if err := k.payOut(ctx, out); err != nil {
				return err
			}
		}
		return k.fund.add(ctx, rest)
	})
	if err != nil {
		return err
	}
	return module.Emit(ctx, &providerv1.EventSlashed{
		Account: account.String(), Amount: reserved + free, Payouts: payouts, Insurance: rest,
	})
}

func (k *Keeper) payOut(ctx context.Context, out providerv1.Payout) error {
	to, err := address.Parse(out.Account)
	if err != nil || out.Amount == 0 {
		return err
	}
	if err := k.bank.SendCoinsFromModuleToAccount(ctx, Name, to, coin.Of(out.Amount)); err != nil {
		return errorsmod.Wrapf(err, "pay slashed stake to %s", out.Account)
	}
	return nil
}

// take lowers a peer's stake by a reserved and a free part.
func take(p *providerv1.Peer, reserved, free uint64) error {
	if reserved > p.Reserved {
		return errorsmod.Wrapf(ErrReserved, "%s has %d utally reserved, %d were to be taken", p.Account, p.Reserved, reserved)
	}
	if have := p.Stake - p.Reserved; free > have {
		return errorsmod.Wrapf(ErrFreeStake, "%s has %d utally free, %d are asked for", p.Account, have, free)
	}
	p.Reserved -= reserved
	p.Stake -= reserved + free
	return nil
}

// change applies f to a peer's stake and stores the result.
func (k *Keeper) change(ctx context.Context, account sdk.AccAddress, f func(*providerv1.Peer) error) error {
	p, err := k.Get(ctx, account)
	if err != nil {
		return err
	}
	before := p
	if err := f(&p); err != nil {
		return err
	}
	if p.Stake == before.Stake && p.Reserved == before.Reserved {
		return nil
	}
	if err := k.storePeer(ctx, account, before, p); err != nil {
		return err
	}
	return module.Emit(ctx, &providerv1.EventStake{Account: p.Account, Stake: p.Stake, Reserved: p.Reserved})
}
