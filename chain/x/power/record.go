package power

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/power"
	powerv1 "github.com/tally-network/tally/gen/tally/power/v1"
)

// kind is what computation was for.
type kind struct {
	name     string
	drilling bool
	of       func(*power.Record) *power.Work
}

var (
	training = kind{"training", false, func(r *power.Record) *power.Work { return &r.Training }}
	drilling = kind{"drilling", true, func(r *power.Record) *power.Work { return &r.Drilling }}
)

// Credit adds verified computation to an account's training. Less than one millionth of a ut counts as nothing.
func (k *Keeper) Credit(ctx context.Context, account sdk.AccAddress, flops uint64) error {
	return k.add(ctx, account, flops, &training)
}

// CreditDrilling adds it to an account's drilling.
func (k *Keeper) CreditDrilling(ctx context.Context, account sdk.AccAddress, flops uint64) error {
	return k.add(ctx, account, flops, &drilling)
}

// add adds verified computation of a kind to an account's, and tells of it whoever rewards that.
func (k *Keeper) add(ctx context.Context, account sdk.AccAddress, flops uint64, as *kind) error {
	micro := flops / power.MicroUT
	if micro == 0 {
		return nil
	}
	before := uint64(0)
	err := k.change(ctx, account, func(own, all *power.Record, h power.Hour) error {
		before = own.Total()
		if err := errors.Join(as.of(own).Credit(micro, h), as.of(all).Credit(micro, h)); err != nil {
			return fmt.Errorf("credit %d FLOP of %s to %s: %w", flops, as.name, account, err)
		}
		return module.Emit(ctx, &powerv1.EventCredited{Account: account.String(), Flops: flops, Total: as.of(own).Total(), Effective: own.Effective(h), As: as.name})
	})
	if err != nil || k.rewards == nil {
		return err
	}
	return k.rewards.Credited(ctx, account, as.drilling, micro, before)
}

// Forfeit takes away all that counts of an account's work, now and at any mark. It stays in the totals. Voters are told
// in any case: a founder may have voted without work.
func (k *Keeper) Forfeit(ctx context.Context, account sdk.AccAddress) error {
	had, err := k.records.Has(ctx, account)
	if had && err == nil {
		err = k.forfeit(ctx, account)
	}
	if err != nil || k.voters == nil {
		return err
	}
	return k.voters.Convicted(ctx, account)
}

func (k *Keeper) forfeit(ctx context.Context, account sdk.AccAddress) error {
	err := k.change(ctx, account, func(own, all *power.Record, h power.Hour) error {
		had := own.Effective(h)
		return errors.Join(own.Forfeit(all), module.Emit(ctx, &powerv1.EventForfeited{Account: account.String(), Effective: had}))
	})
	if err != nil {
		return err
	}
	return k.past.forfeit(ctx, account)
}

// Effective returns the computing power of an account, in millionths of a ut.
func (k *Keeper) Effective(ctx context.Context, account sdk.AccAddress) (uint64, error) {
	own, err := k.Of(ctx, account)
	if err != nil {
		return 0, err
	}
	h, err := k.Hour(ctx)
	return own.Effective(h), err
}

// Of returns the record of an account, empty if it was never credited with anything.
func (k *Keeper) Of(ctx context.Context, account sdk.AccAddress) (*power.Record, error) {
	return found(k.records.Get(ctx, account))
}

// change changes the record of an account, and that of all with it.
func (k *Keeper) change(ctx context.Context, account sdk.AccAddress, do func(own, all *power.Record, h power.Hour) error) error {
	h, err := k.Hour(ctx)
	if err != nil {
		return err
	}
	own, err := k.Of(ctx, account)
	if err != nil {
		return err
	}
	if err := k.past.keep(ctx, account, ToProto(account.String(), own)); err != nil {
		return err
	}
	all, err := k.together(ctx)
	if err != nil {
		return err
	}
	had := own.Copy()
	if err := do(own, all, h); err != nil {
		return err
	}
	if k.seats != nil {
		if err := k.seats.Moved(ctx, account, had, own); err != nil {
			return err
		}
	}
	return errors.Join(k.records.Set(ctx, account, ToProto(account.String(), own)), k.all.Set(ctx, ToProto("", all)))
}

// Hour returns the hour of the block.
func (k *Keeper) Hour(ctx context.Context) (power.Hour, error) {
	origin, err := k.origin.Get(ctx)
	if err != nil {
		return 0, err
	}
	return power.HourAt(module.Now(ctx), origin)
}

// together returns the record of all accounts.
func (k *Keeper) together(ctx context.Context) (*power.Record, error) {
	return found(k.all.Get(ctx))
}

func found(r powerv1.Record, err error) (*power.Record, error) {
	if errors.Is(err, collections.ErrNotFound) {
		return &power.Record{}, nil
	} else if err != nil {
		return nil, err
	}
	return FromProto(&r)
}

// Worth is what a record is worth at an hour.
func Worth(account string, r *power.Record, h power.Hour) powerv1.Power {
	return powerv1.Power{
		Account: account, Effective: r.Effective(h),
		Drilling: r.Drilling.Effective(h), DrillingTotal: r.Drilling.Total(),
		Training: r.Training.Effective(h), TrainingTotal: r.Training.Total(),
	}
}

// ToProto returns a record as the chain stores it.
func ToProto(account string, r *power.Record) powerv1.Record {
	work := func(w *power.Work) powerv1.Work { return powerv1.Work{Total: w.Total(), Grown: w.Grown()} }
	return powerv1.Record{Account: account, Drilling: work(&r.Drilling), Training: work(&r.Training)}
}

// FromProto reads a record that the chain stores.
func FromProto(r *powerv1.Record) (out *power.Record, err error) {
	out = &power.Record{}
	if out.Drilling, err = power.WorkOf(r.Drilling.Total, r.Drilling.Grown); err != nil {
		return nil, fmt.Errorf("drilling of %s: %w", r.Account, err)
	}
	if out.Training, err = power.WorkOf(r.Training.Total, r.Training.Grown); err != nil {
		return nil, fmt.Errorf("training of %s: %w", r.Account, err)
	}
	return out, nil
}
