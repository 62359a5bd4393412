package seats

import (
	"context"
	"errors"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/core/money"
	"github.com/tally-network/tally/core/power"
	"github.com/tally-network/tally/core/reserve"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
)

// shares are rewards for a member's seats that belong to those whose power counts for it. Each account's part is
// reckoned before its power or its member changes, and when it is claimed.
type shares struct {
	incomes collections.Map[sdk.AccAddress, seatsv1.CumulativeReward] // by member
	of      collections.Map[sdk.AccAddress, seatsv1.Rewards]          // by account
}

// income returns what has come in for a member.
func (s shares) income(ctx context.Context, member sdk.AccAddress) (reserve.Stream, error) {
	x, err := s.incomes.Get(ctx, member)
	if errors.Is(err, collections.ErrNotFound) {
		return reserve.Stream{}, nil
	} else if err != nil {
		return reserve.Stream{}, err
	}
	return reserve.StreamOf(x.PerPower, x.Shift)
}

// pour adds a reward for a member, of which all power that counts for it has a part.
func (s shares) pour(ctx context.Context, member sdk.AccAddress, pay uint64, sum *power.Record) error {
	stream, err := s.income(ctx, member)
	if err != nil {
		return err
	}
	if err := stream.Pour(pay, sum.Grown()); err != nil {
		return err
	}
	x := seatsv1.CumulativeReward{Member: member.String()}
	x.PerPower, x.Shift = stream.Bytes()
	return s.incomes.Set(ctx, member, x)
}

// due returns an account's share with what it has had of its member's income: by a record that counted for it
// since, of member, or of nobody.
func (s shares) due(ctx context.Context, account, member sdk.AccAddress, own *power.Record) (seatsv1.Rewards, error) {
	x, err := s.of.Get(ctx, account)
	if errors.Is(err, collections.ErrNotFound) {
		x = seatsv1.Rewards{Account: account.String()}
	} else if err != nil {
		return x, err
	}
	if member == nil {
		return x, nil
	}
	stream, err := s.income(ctx, member)
	if err != nil {
		return x, err
	}
	mark, err := reserve.MarkOf(x.PerPower, x.Shift)
	if err != nil {
		return x, err
	}
	gain, err := stream.Since(&mark, own.Grown())
	x.Due += gain // no overflow: it is part of the supply
	return x, err
}

// settle reckons an account's share before its record or its member changes: from now on it counts for next.
func (s shares) settle(ctx context.Context, account, member, next sdk.AccAddress, own *power.Record) error {
	x, err := s.due(ctx, account, member, own)
	if err != nil {
		return err
	}
	return s.put(ctx, account, next, x)
}

// put stores a share that counts for a member from now on. Without due and income it is none.
func (s shares) put(ctx context.Context, account, member sdk.AccAddress, x seatsv1.Rewards) error {
	x.PerPower, x.Shift = nil, 0
	if member != nil {
		stream, err := s.income(ctx, member)
		if err != nil {
			return err
		}
		mark := stream.Mark()
		x.PerPower, x.Shift = mark.Bytes()
	}
	if x.Due == 0 && x.Shift == 0 {
		return s.of.Remove(ctx, account)
	}
	return s.of.Set(ctx, account, x)
}

// Share takes from a reward for a member's seats what belongs to those whose power counts for it: of the part that power has
// earned, all but a commission. Where some of that power has left since the draw, its part is the member's, and not that of
// whoever stays with a crumb. What has decayed since has not left. It returns the rest, which is the member's own. The caller
// sends what was taken to the module's account.
func (k *Keeper) Share(ctx context.Context, account sdk.AccAddress, pay uint64) (rest uint64, err error) {
	p, err := k.rules.Get(ctx)
	if err != nil {
		return 0, err
	}
	_, sum, err := k.sum(ctx, account)
	if err != nil {
		return 0, err
	}
	m, err := k.members.Get(ctx, account)
	if err != nil && !errors.Is(err, collections.ErrNotFound) { // it has left, and is forgotten: nobody earned anything for it
		return 0, err
	}
	hour, err := k.Hour(ctx)
	if err != nil {
		return 0, err
	}
	shared := money.Part(pay, m.EarnedBps)
	shared = money.ScaleClamped(shared, min(sum.Effective(min(hour, power.Hour(m.EarnedHour))), m.EarnedPower), max(m.EarnedPower, 1))
	shared -= money.Part(shared, p.CommissionBps)
	if shared == 0 || sum.Grown().Sign() == 0 { // nobody's power counts for it
		return pay, nil
	}
	return pay - shared, errors.Join(k.shares.pour(ctx, account, shared, sum), k.count(ctx, func(t *seatsv1.Totals) { t.UnclaimedRewards += shared }))
}

// Due returns what an account may take of rewards for seats.
func (k *Keeper) Due(ctx context.Context, account sdk.AccAddress) (uint64, error) {
	member, own, err := k.counting(ctx, account)
	if err != nil {
		return 0, err
	}
	x, err := k.shares.due(ctx, account, member, own)
	return x.Due, err
}

// Take pays an account what it may take of rewards for seats, and returns how much that was.
func (k *Keeper) Take(ctx context.Context, account sdk.AccAddress) (uint64, error) {
	member, own, err := k.counting(ctx, account)
	if err != nil {
		return 0, err
	}
	x, err := k.shares.due(ctx, account, member, own)
	pay := x.Due
	if err != nil || pay == 0 {
		return 0, err
	}
	if err := k.SendCoinsFromModuleToAccount(ctx, Name, account, coin.Of(pay)); err != nil {
		return 0, errorsmod.Wrapf(err, "pay %d utally of rewards for seats", pay)
	}
	x.Due = 0
	return pay, errors.Join(k.shares.put(ctx, account, member, x), k.count(ctx, func(t *seatsv1.Totals) { t.UnclaimedRewards -= pay }))
}

// counting returns the member for which an account's power counts, and that power.
func (k *Keeper) counting(ctx context.Context, account sdk.AccAddress) (sdk.AccAddress, *power.Record, error) {
	member, err := k.MemberOf(ctx, account)
	if err != nil {
		return nil, nil, err
	}
	own, err := k.Of(ctx, account)
	return member, own, err
}
