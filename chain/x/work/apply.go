package work

import (
	"context"
	"errors"
	"fmt"

	errorsmod "cosmossdk.io/errors"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// Begin begins the lease of a matched order, and returns what it costs at most.
func (k *Keeper) Begin(ctx context.Context, m job.Match) (job.Quote, error) {
	m.Affords = k.affords(ctx)
	l, effects, err := job.NewLease(m, module.Now(ctx))
	if err != nil {
		return job.Quote{}, errorsmod.Wrap(ErrRefused, err.Error())
	}
	id := l.Order.ID()
	begun, err := k.leases.terms.Has(ctx, id[:])
	if err == nil && !begun {
		begun, err = k.Retired(ctx, id)
	}
	switch {
	case err != nil:
		return job.Quote{}, err
	case begun:
		return job.Quote{}, errorsmod.Wrapf(ErrRefused, "lease %s has begun already", id)
	}
	if err := k.leases.enter(ctx, id, &l); err != nil {
		return job.Quote{}, err
	}
	if err := module.Emit(ctx, &workv1.EventBegun{Order: id.String(), Lead: l.Lead(), Price: l.Quote.Price}); err != nil {
		return job.Quote{}, err
	}
	return l.Quote, k.execute(ctx, id, effects)
}

// apply applies an event to a lease. On an error the caller must drop what
// was written.
func (k *Keeper) apply(ctx context.Context, id canon.Hash, e job.Event) (*job.Lease, error) {
	before, err := k.before(ctx, id, e)
	if err != nil {
		return nil, err
	}
	return k.applyLoaded(ctx, id, before, e)
}

// before reads what of a lease an event may change. Where the event lies does not
// depend on what is still to be filled in from the lease.
func (k *Keeper) before(ctx context.Context, id canon.Hash, e job.Event) (*loaded, error) {
	return k.load(ctx, id, func(l *job.Lease) job.Part { return l.Touched(e, module.Now(ctx)) })
}

// What reading much of an order is charged for each unit and each of its segments, and at most: a
// transaction must be able to pay for it. It is about what it takes of a validator.
const (
	gasBulkUnit    = 800
	gasBulkSegment = 8
	maxBulkGas     = 5_000_000
)

// bulk charges at once for reading much of a lease. It returns a context in which nothing more costs
// gas: an event that happens once must not fail because the order is large. It is charged before, so
// that whoever has it undone, and sends it again, has paid or has been counted.
func bulk(ctx context.Context, p *job.Problem) context.Context {
	gas := uint64(p.Units()) * (gasBulkUnit + gasBulkSegment*uint64(p.Segments()))
	module.Charge(ctx, min(gas, maxBulkGas), "order")
	return sdk.UnwrapSDKContext(ctx).WithGasMeter(storetypes.NewInfiniteGasMeter())
}

// applyLoaded applies an event to a lease that was read for it.
func (k *Keeper) applyLoaded(ctx context.Context, id canon.Hash, before *loaded, e job.Event) (*job.Lease, error) {
	after, effects, err := job.Apply(before.Lease, e, module.Now(ctx))
	if err != nil {
		return nil, errorsmod.Wrap(ErrRefused, err.Error())
	}
	if err := k.leases.save(ctx, id, before, &after); err != nil {
		return nil, err
	}
	if err := k.leases.index(ctx, id, &before.Lease, &after, before.part.Units); err != nil {
		return nil, err
	}
	if err := k.ended(ctx, &before.Lease, &after, e); err != nil {
		return nil, err
	}
	if err := k.execute(ctx, id, effects); err != nil {
		return nil, err
	}
	if after.Phase == before.Phase {
		return &after, nil
	}
	if after.Phase == job.Settled {
		s := after.Settlement()
		if err := errors.Join(k.record.add(ctx, &s), k.onSettled(ctx, &after)); err != nil {
			return nil, err
		}
	}
	return &after, module.Emit(ctx, &workv1.EventPhase{Order: id.String(), Phase: workv1.Phase(after.Phase), Reason: after.Reason})
}

// execute does what an event has brought about, in order.
func (k *Keeper) execute(ctx context.Context, id canon.Hash, effects []job.Effect) error {
	for len(effects) > 0 {
		n := 1
		if effects[0].Kind == job.Slash {
			for n < len(effects) && effects[n].Kind == job.Award {
				n++
			}
		}
		if err := k.executeEffect(ctx, id, effects[0], effects[1:n]); err != nil {
			return errorsmod.Wrapf(err, "%v %d of %s", effects[0].Kind, effects[0].Amount, effects[0].Account)
		}
		effects = effects[n:]
	}
	return nil
}

// executeEffect does one thing. Awards are the shares of what is slashed.
func (k *Keeper) executeEffect(ctx context.Context, id canon.Hash, e job.Effect, awards []job.Effect) error {
	switch e.Kind {
	case job.Pay:
		return k.escrow.Pay(ctx, id, e.Account, e.Amount)
	case job.Burn:
		return k.escrow.Burn(ctx, id, e.Amount)
	case job.Tax:
		return k.tax(ctx, id, e.Amount)
	case job.Prize:
		return k.prize(ctx, id, e)
	case job.Insure:
		return k.insure(ctx, id, e)
	case job.Refund:
		return k.escrow.Settle(ctx, id, e.Amount)
	case job.Emit:
		return module.Emit(ctx, &workv1.EventProgress{Order: id.String(), What: e.Note, Account: e.Account, Number: e.Amount})
	}
	account, err := address.Parse(e.Account)
	if err != nil {
		return err
	}
	switch e.Kind {
	case job.Reserve:
		return k.stakes.Reserve(ctx, account, e.Amount)
	case job.Release:
		return k.stakes.Release(ctx, account, e.Amount)
	case job.Slash:
		return k.stakes.Slash(ctx, account, e.Amount, 0, payouts(awards))
	case job.Jail:
		return k.jail(ctx, account, job.Offence(e.Amount))
	case job.Exclude:
		owner, err := address.Parse(e.Note)
		return errors.Join(err, k.stakes.Exclude(ctx, account, owner))
	case job.Falter:
		return k.stakes.Falter(ctx, account)
	case job.Led:
		return k.stakes.Mend(ctx, account, e.Amount)
	case job.Lock:
		return k.bank.SendCoinsFromAccountToModule(ctx, account, Name, coin.Of(e.Amount))
	case job.Unlock:
		return k.bank.SendCoinsFromModuleToAccount(ctx, Name, account, coin.Of(e.Amount))
	case job.Credit:
		return k.power.Credit(ctx, id, account, e.Amount)
	case job.Vouch:
		return k.stakes.Vouch(ctx, account, e.Amount)
	case job.Work:
		return k.stakes.Time(ctx, account, e.Amount, 0)
	case job.Busy:
		return k.stakes.Time(ctx, account, 0, e.Amount)
	case job.Discredit:
		return errors.Join(k.stakes.Discredit(ctx, account), k.power.Forfeit(ctx, account))
	}
	return fmt.Errorf("effect %v is unknown", e.Kind)
}

// jail keeps an account from new work for the time that the rules say.
func (k *Keeper) jail(ctx context.Context, account sdk.AccAddress, o job.Offence) error {
	p, err := k.rules.Get(ctx)
	switch {
	case err != nil:
		return err
	case o == job.Carelessness:
		return k.stakes.Jail(ctx, account, module.Now(ctx)+p.JailMs)
	case o == job.Absence:
		return k.stakes.Jail(ctx, account, module.Now(ctx)+p.AbsenceMs)
	}
	return fmt.Errorf("nobody is jailed for %v: the rules have no time for it", o)
}

// payouts returns awards as the registry pays them; the insurance fund gets what
// they leave.
func payouts(awards []job.Effect) []providerv1.Payout {
	var out []providerv1.Payout
	for _, a := range awards {
		if a.Account != job.Insurance {
			out = append(out, providerv1.Payout{Account: a.Account, Amount: a.Amount})
		}
	}
	return out
}
