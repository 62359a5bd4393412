package seats

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	powermodule "github.com/tally-network/tally/chain/x/power"
	"github.com/tally-network/tally/core/beacon"
	"github.com/tally-network/tally/core/power"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
)

// weights is for whom power counts, and how much.
type weights struct {
	delegations collections.Map[sdk.AccAddress, seatsv1.Delegation]
	sums        collections.Map[sdk.AccAddress, seatsv1.Sum] // by member
}

// Delegate makes an account's power count for a member; for nobody if that is nil.
func (k *Keeper) Delegate(ctx context.Context, account, to sdk.AccAddress) error {
	if to != nil {
		m, err := k.members.Get(ctx, to)
		if err != nil && !errors.Is(err, collections.ErrNotFound) {
			return err
		}
		if !takesPart(&m) {
			return errorsmod.Wrapf(ErrMember, "%s takes no part in consensus: tally seats shows who does", to)
		}
	}
	own, err := k.Of(ctx, account)
	if err != nil {
		return err
	}
	had, err := k.MemberOf(ctx, account)
	if err != nil || had.Equals(to) {
		return err
	}
	if err := mayRedelegate(ctx, k, account); err != nil {
		return err
	}
	epoch, err := k.epoch(ctx)
	if err != nil {
		return err
	}
	if err := k.shares.settle(ctx, account, had, to, own); err != nil {
		return err
	}
	if had != nil {
		err = k.change(ctx, had, epoch, func(sum *power.Record) error { return sum.Part(own) })
	}
	if err != nil {
		return err
	}
	// One that counts for nobody is kept as well: else the next could come at once.
	err = k.delegations.Set(ctx, account, seatsv1.Delegation{Account: account.String(), Member: to.String(), SinceMs: module.Now(ctx)})
	if err == nil && to != nil {
		err = k.change(ctx, to, epoch, func(sum *power.Record) error { return sum.Join(own) })
	}
	return errors.Join(err, module.Emit(ctx, &seatsv1.EventDelegated{Account: account.String(), Member: to.String()}))
}

// mayRedelegate returns an error while an account's last delegation still stands.
func mayRedelegate(ctx context.Context, k *Keeper, account sdk.AccAddress) error {
	d, err := k.delegations.Get(ctx, account)
	if errors.Is(err, collections.ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	p, err := k.rules.Get(ctx)
	if err == nil && d.SinceMs > 0 && module.Now(ctx) < d.SinceMs+p.RedelegateMs {
		err = errorsmod.Wrapf(ErrDelegation, "%s has moved its power: it may again at %s", account, wire.Moment(d.SinceMs+p.RedelegateMs))
	}
	return err
}

// MemberOf returns the member for which an account's power counts, nil if there is none.
func (k weights) MemberOf(ctx context.Context, account sdk.AccAddress) (sdk.AccAddress, error) {
	d, err := k.delegations.Get(ctx, account)
	if errors.Is(err, collections.ErrNotFound) || err == nil && d.Member == "" {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return address.Parse(d.Member)
}

// Moved counts what an account has now in place of what it had.
func (k *Keeper) Moved(ctx context.Context, account sdk.AccAddress, had, has *power.Record) error {
	to, err := k.MemberOf(ctx, account)
	if err != nil || to == nil {
		return err
	}
	epoch, err := k.epoch(ctx)
	if err != nil {
		return err
	}
	return errors.Join(k.shares.settle(ctx, account, to, to, had),
		k.change(ctx, to, epoch, func(sum *power.Record) error { return errors.Join(sum.Part(had), sum.Join(has)) }))
}

// maxDated is how many sums are kept of a member: those of changes in this epoch and the two before, and what held earlier.
const maxDated = 4

// change changes the power that counts for a member: draws count it two epochs later.
func (k weights) change(ctx context.Context, member sdk.AccAddress, epoch uint64, do func(*power.Record) error) error {
	s, sum, err := k.sum(ctx, member)
	if err != nil {
		return err
	}
	if err := do(sum); err != nil {
		return err
	}
	if len(s.Dated) == 0 { // a draw may be under way for which nothing counted
		s.Dated = []seatsv1.Dated{{Power: powermodule.ToProto("", &power.Record{})}}
	}
	from, now := beacon.Counts(epoch), powermodule.ToProto("", sum)
	if n := len(s.Dated); n > 0 && s.Dated[n-1].FromEpoch >= from {
		s.Dated[n-1].Power = now
	} else {
		s.Dated = append(s.Dated, seatsv1.Dated{FromEpoch: from, Power: now})
	}
	for len(s.Dated) > 1 && s.Dated[1].FromEpoch < epoch { // a draw of the epoch before may be under way
		s.Dated = s.Dated[1:]
	}
	return k.sums.Set(ctx, member, s)
}

// sum returns the power that counts for a member: as it is stored, and the newest.
func (k weights) sum(ctx context.Context, member sdk.AccAddress) (seatsv1.Sum, *power.Record, error) {
	s, err := k.sums.Get(ctx, member)
	if errors.Is(err, collections.ErrNotFound) || err == nil && len(s.Dated) == 0 {
		return s, &power.Record{}, nil
	} else if err != nil {
		return s, nil, err
	}
	newest, err := powermodule.FromProto(&s.Dated[len(s.Dated)-1].Power)
	return s, newest, err
}

// as returns the power that counts for a member in an epoch, in millionths of a ut at an hour.
func (k weights) as(ctx context.Context, member sdk.AccAddress, epoch uint64, h power.Hour) (uint64, error) {
	s, err := k.sums.Get(ctx, member)
	if errors.Is(err, collections.ErrNotFound) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	for i := len(s.Dated) - 1; i >= 0; i-- {
		if s.Dated[i].FromEpoch <= epoch {
			r, err := powermodule.FromProto(&s.Dated[i].Power)
			if err != nil {
				return 0, err
			}
			return r.Effective(h), nil
		}
	}
	if n := len(s.Dated); n > 0 && s.Dated[0].FromEpoch > beacon.Counts(epoch) { // a draw that is older than what is kept
		return 0, fmt.Errorf("the power of %s as of epoch %d is not kept any more", member, epoch)
	}
	return 0, nil
}
