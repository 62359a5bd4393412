package seats

import (
	"context"
	"errors"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/beacon"
	"github.com/tally-network/tally/core/money"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
)

// Join enters an account, whose consensus key has signed. Its own power counts for it, unless it counts for
// another already.
func (k *Keeper) Join(ctx context.Context, account sdk.AccAddress, key, beaconKey []byte, bond uint64) (from uint64, err error) {
	m, err := k.entrant(ctx, account, key)
	if err != nil {
		return 0, err
	}
	if m.FromEpoch, err = k.beacon.Register(ctx, account, beaconKey); err != nil {
		return 0, err
	}
	if err := k.members.Set(ctx, account, m); err != nil {
		return 0, err
	}
	if err := k.AddBond(ctx, account, bond); err != nil {
		return 0, err
	}
	switch has, err := k.delegations.Has(ctx, account); {
	case err != nil:
		return 0, err
	case !has:
		return m.FromEpoch, k.Delegate(ctx, account, account)
	}
	return m.FromEpoch, nil
}

// entrant returns the member that an account becomes: a new one, or one that had left and comes back by its key.
func (k *Keeper) entrant(ctx context.Context, account sdk.AccAddress, key []byte) (seatsv1.Member, error) {
	owner, err := k.byKey.Get(ctx, consensusAddress(key))
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return seatsv1.Member{}, err
	}
	taken := err == nil
	m, err := k.members.Get(ctx, account)
	switch {
	case errors.Is(err, collections.ErrNotFound) && taken:
		return m, errorsmod.Wrapf(ErrKey, "it is the key of %s: a node has one of its own", sdk.AccAddress(owner))
	case errors.Is(err, collections.ErrNotFound):
		m = seatsv1.Member{Account: account.String(), ConsensusKey: key, Status: seatsv1.STATUS_ACTIVE}
		return m, errors.Join(k.byKey.Set(ctx, consensusAddress(key), account), k.count(ctx, func(t *seatsv1.Totals) { t.Members++ }))
	case err != nil:
		return m, err
	case m.Status == seatsv1.STATUS_TOMBSTONED:
		return m, errorsmod.Wrapf(ErrStatus, "%s has signed twice: another account with another key may join", m.Account)
	case m.Status != seatsv1.STATUS_LEFT:
		return m, errorsmod.Wrapf(ErrStatus, "%s is a member already: tally tx seats bond adds to its bond", m.Account)
	case string(m.ConsensusKey) != string(key):
		return m, errorsmod.Wrapf(ErrKey, "%s comes back by the key that it had, or once its bond is back", m.Account)
	}
	m.Status = seatsv1.STATUS_ACTIVE
	return m, nil
}

// AddBond moves amount utally from a member's account to its bond.
func (k *Keeper) AddBond(ctx context.Context, account sdk.AccAddress, amount uint64) error {
	m, err := k.Get(ctx, account)
	if err != nil {
		return err
	}
	if !takesPart(&m) {
		return errorsmod.Wrapf(ErrStatus, "%s takes no part: tally tx seats join enters it", account)
	}
	if err := k.SendCoinsFromAccountToModule(ctx, account, Name, coin.Of(amount)); err != nil {
		return errorsmod.Wrapf(err, "lock a bond of %d utally", amount)
	}
	if err := changeBond(ctx, k, &m, m.Bond+amount); err != nil { // no overflow: it is part of the supply
		return err
	}
	if err := k.checkBond(ctx, m.Bond); err != nil {
		return err
	}
	return errors.Join(k.put(ctx, m), k.count(ctx, func(t *seatsv1.Totals) { t.Bonds += amount }), tell(ctx, &m))
}

// changeBond changes a bond, and keeps what it was before this epoch, and before the last: a draw counts no bond that came while it
// went on, and it may go on into the next.
func changeBond(ctx context.Context, k *Keeper, m *seatsv1.Member, to uint64) error {
	epoch, err := k.epoch(ctx)
	if m.BondEpoch != epoch {
		older := m.Bond
		if m.BondEpoch+1 == epoch { // of which a draw may be under way
			older = m.BondBefore
		}
		m.BondEpoch, m.BondBefore, m.BondOlder = epoch, m.Bond, older
	}
	m.Bond = to
	return err
}

// bonded returns the bond of a member that a draw of an epoch counts.
func bonded(m *seatsv1.Member, epoch uint64) uint64 {
	switch {
	case m.BondEpoch > epoch:
		return min(m.Bond, m.BondBefore, m.BondOlder)
	case m.BondEpoch == epoch:
		return min(m.Bond, m.BondBefore)
	}
	return m.Bond
}

// mayWithdraw returns an error while what an account has unbonded still stands behind votes: behind those that it has, beyond its
// bond, or behind some that it had, of which there may still be evidence.
func mayWithdraw(ctx context.Context, k *Keeper, account sdk.AccAddress) error {
	m, err := k.members.Get(ctx, account)
	if errors.Is(err, collections.ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	p, err := k.rules.Get(ctx)
	if err != nil {
		return err
	}
	set, err := k.current(ctx)
	if err != nil {
		return err
	}
	switch until := m.UncoveredMs + evidenceAge(ctx); {
	case !covered(&p, &m, set):
		return errorsmod.Wrapf(ErrBond, "%s has votes for which its bond does not stand", account)
	case m.UncoveredMs > 0 && module.Now(ctx) < until:
		return errorsmod.Wrapf(ErrBond, "%s had such votes, and may still be found to have signed twice by them until %s", account, wire.Moment(until))
	}
	return nil
}

// covered reports whether a member's bond stands for as many seats as its part of a set's votes is, and for one at least. In a set
// that a draw has given whole, a vote is a seat, and some seats may be empty.
func covered(p *seatsv1.Params, m *seatsv1.Member, set seatsv1.Set) bool {
	all := uint64(0)
	for _, s := range set.Seats {
		all += s.Votes // no overflow: CometBFT bounds the sum
	}
	return m.Votes == 0 || m.Bond/p.BondPerSeat >= max(money.ScaleClamped(p.Seats, uint64(m.Votes), max(all, set.Scale)), 1)
}

// evidenceAge returns for how long CometBFT takes evidence, in milliseconds.
func evidenceAge(ctx context.Context) int64 {
	if e := sdk.UnwrapSDKContext(ctx).ConsensusParams().Evidence; e != nil {
		return e.MaxAgeDuration.Milliseconds()
	}
	return 0
}

// checkBond returns an error unless a bond suffices for a seat.
func (k *Keeper) checkBond(ctx context.Context, bond uint64) error {
	p, err := k.rules.Get(ctx)
	if err == nil && bond < p.BondPerSeat {
		err = errorsmod.Wrapf(ErrBond, "%d utally suffice for no seat, which takes %d", bond, p.BondPerSeat)
	}
	return err
}

// Unbond takes a part of a bond back, after a while.
func (k *Keeper) Unbond(ctx context.Context, account sdk.AccAddress, amount uint64) error {
	m, err := k.Get(ctx, account)
	if err != nil {
		return err
	}
	if amount == 0 || amount >= m.Bond {
		return errorsmod.Wrapf(ErrBond, "%d of a bond of %d utally: take back a part, or all of it by tally tx seats leave", amount, m.Bond)
	}
	if err := k.checkBond(ctx, m.Bond-amount); err != nil {
		return err
	}
	return k.release(ctx, account, &m, amount)
}

// Leave gives up all seats from the next draw on, and the bond after a while.
func (k *Keeper) Leave(ctx context.Context, account sdk.AccAddress) error {
	m, err := k.Get(ctx, account)
	if err != nil {
		return err
	}
	if !takesPart(&m) {
		return errorsmod.Wrapf(ErrStatus, "%s takes no part already", account)
	}
	m.Status = seatsv1.STATUS_LEFT
	return k.release(ctx, account, &m, m.Bond)
}

// release holds a part of a bond for the time of unbonding, and stores the member.
func (k *Keeper) release(ctx context.Context, account sdk.AccAddress, m *seatsv1.Member, amount uint64) error {
	if full, err := k.unbonding.Full(ctx, account); err != nil {
		return err
	} else if full {
		return errorsmod.Wrapf(ErrBond, "%s waits for too many parts of its bond: wait for the first", account)
	}
	p, err := k.rules.Get(ctx)
	if err != nil {
		return err
	}
	if err := changeBond(ctx, k, m, m.Bond-amount); err != nil {
		return err
	}
	if amount > 0 {
		err = k.unbonding.Hold(ctx, account, module.Now(ctx)+p.UnbondingMs, amount)
	}
	return errors.Join(err, k.put(ctx, *m), tell(ctx, m),
		k.count(ctx, func(t *seatsv1.Totals) { t.Bonds -= amount }))
}

// Unjail makes a member active again that has missed too many blocks.
func (k *Keeper) Unjail(ctx context.Context, account sdk.AccAddress) error {
	m, err := k.Get(ctx, account)
	if err != nil {
		return err
	}
	if m.Status != seatsv1.STATUS_JAILED {
		return errorsmod.Wrapf(ErrStatus, "%s is not jailed", account)
	}
	epoch, err := k.epoch(ctx)
	if err != nil {
		return err
	}
	m.Status, m.FromEpoch = seatsv1.STATUS_ACTIVE, beacon.Counts(epoch)
	m.Missed, m.MissedBefore = 0, 0 // what it was jailed for: else the next draw could jail it for the same blocks
	return errors.Join(k.put(ctx, m), tell(ctx, &m))
}

// forget removes a member that has left, once it has no votes and its bond is back.
func (k draws) forget(ctx context.Context, account sdk.AccAddress, m *seatsv1.Member) error {
	if m.Status != seatsv1.STATUS_LEFT || m.Votes > 0 {
		return nil
	}
	if held, err := k.unbonding.Of(ctx, account); err != nil || held > 0 {
		return err
	}
	set, err := k.current(ctx)
	if err != nil || sdk.UnwrapSDKContext(ctx).BlockHeight() < set.Height+1 { // the last block that it was to sign is not told of yet
		return err
	}
	return errors.Join(k.members.Remove(ctx, account), k.byKey.Remove(ctx, consensusAddress(m.ConsensusKey)),
		k.beacon.Forget(ctx, account),
		k.count(ctx, func(t *seatsv1.Totals) { t.Members-- }))
}
