package seats

import (
	"context"
	"errors"

	"cosmossdk.io/collections"
	"cosmossdk.io/core/comet"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/money"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
)

// leastCounted is how many blocks of an epoch must be counted for anybody to have missed too many.
const leastCounted = 10

// attendance is what the keeper does about who signs blocks: not at all, or twice.
type attendance struct{ *Keeper }

// convict slashes whoever CometBFT has proved to have signed twice.
func (k attendance) convict(ctx context.Context) error {
	info := sdk.UnwrapSDKContext(ctx).CometInfo()
	if info == nil || info.GetEvidence() == nil {
		return nil
	}
	for i := range info.GetEvidence().Len() {
		e := info.GetEvidence().Get(i)
		account, err := k.byKey.Get(ctx, e.Validator().Address())
		if errors.Is(err, collections.ErrNotFound) {
			continue // it has left, and its bond is back
		} else if err != nil {
			return err
		}
		err = module.Attempt(ctx, func(ctx context.Context) error { return k.slash(ctx, account, e.Height()) })
		if err != nil { // it stops no block
			err = module.Emit(ctx, &seatsv1.EventStuck{Account: sdk.AccAddress(account).String(), Reason: err.Error()})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// slash takes a part of a member's bond, all of its power, and its seats from the next draw on. As long as a convict has votes it
// may sign twice again: what it signs in an epoch after the last slash takes the same part of what is left. Whoever reports older
// offences one by one takes nothing.
func (k attendance) slash(ctx context.Context, account sdk.AccAddress, height int64) error {
	m, err := k.Get(ctx, account)
	if err != nil {
		return err
	}
	if m.Status == seatsv1.STATUS_TOMBSTONED {
		c, err := k.beacon.Calendar(ctx)
		if err != nil || c.At(height) <= m.BondEpoch { // in which the last slash changed its bond
			return err
		}
	}
	p, err := k.rules.Get(ctx)
	if err != nil {
		return err
	}
	held, err := k.unbonding.Slash(ctx, account, p.SlashBps)
	if err != nil {
		return err
	}
	bond := money.Part(m.Bond, p.SlashBps)
	if sum := bond + held; sum > 0 {
		err = k.SendCoinsFromModuleToModule(ctx, Name, k.insurance, coin.Of(sum))
	}
	rest := m.Bond - bond
	if rest > 0 {
		err = errors.Join(err, k.unbonding.Hold(ctx, account, module.Now(ctx)+p.UnbondingMs, rest))
	}
	m.Status = seatsv1.STATUS_TOMBSTONED
	err = errors.Join(err, changeBond(ctx, k.Keeper, &m, 0))
	return errors.Join(err, k.put(ctx, m), tell(ctx, &m), k.Forfeit(ctx, account),
		k.count(ctx, func(t *seatsv1.Totals) { t.Bonds -= bond + rest }),
		module.Emit(ctx, &seatsv1.EventEquivocation{Account: m.Account, Height: height, Slashed: bond + held}))
}

// notice counts who has not signed the block before, in a block in which something happens.
func (k attendance) notice(ctx context.Context) error {
	epoch, err := k.epoch(ctx)
	if err != nil {
		return err
	}
	p, err := k.presence.Get(ctx)
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return err
	}
	if p.Epoch != epoch {
		before := uint32(0)
		if p.Epoch+1 == epoch {
			before = p.Blocks
		}
		p = seatsv1.Presence{Epoch: epoch, BlocksBefore: before}
	}
	p.Blocks++
	if err := k.presence.Set(ctx, p); err != nil {
		return err
	}
	info := sdk.UnwrapSDKContext(ctx).CometInfo()
	if info == nil || info.GetLastCommit() == nil {
		return nil
	}
	votes := info.GetLastCommit().Votes()
	for i := range votes.Len() {
		if v := votes.Get(i); v.GetBlockIDFlag() == comet.BlockIDFlagAbsent {
			if err := k.miss(ctx, v.Validator().Address(), epoch); err != nil {
				return err
			}
		}
	}
	return nil
}

// miss counts a block that a validator has not signed.
func (k attendance) miss(ctx context.Context, consensus []byte, epoch uint64) error {
	account, err := k.Account(ctx, consensus)
	if err != nil {
		return err
	}
	m, err := k.Get(ctx, account)
	if err != nil {
		return err
	}
	if m.MissedEpoch != epoch {
		m.MissedBefore = missedIn(&m, epoch-1)
		m.Missed, m.MissedEpoch = 0, epoch
	}
	m.Missed++
	return k.put(ctx, m)
}

// missedIn returns how many blocks a member has missed in an epoch, of the last two in which it missed any.
func missedIn(m *seatsv1.Member, epoch uint64) uint32 {
	switch epoch {
	case m.MissedEpoch:
		return m.Missed
	case m.MissedEpoch - 1:
		return m.MissedBefore
	}
	return 0
}

// judge jails a member that missed too many blocks of the epoch before.
func (k attendance) judge(ctx context.Context, m *seatsv1.Member, epoch uint64) error {
	missed := missedIn(m, epoch-1)
	if m.Status != seatsv1.STATUS_ACTIVE || missed == 0 {
		return nil
	}
	p, err := k.presence.Get(ctx)
	if err != nil || p.Epoch != epoch || p.BlocksBefore < leastCounted {
		return err
	}
	rules, err := k.rules.Get(ctx)
	if err != nil || uint64(missed)*bps <= uint64(p.BlocksBefore)*uint64(rules.MaxMissedBps) {
		return err
	}
	m.Status = seatsv1.STATUS_JAILED
	return errors.Join(k.put(ctx, *m), tell(ctx, m))
}
