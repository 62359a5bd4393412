package sessions

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	sessionsv1 "github.com/tally-network/tally/gen/tally/sessions/v1"
)

// happen lets an event happen to a session, and does what follows from it.
func (k *Keeper) happen(ctx context.Context, id canon.Hash, e session.Event) error {
	before, err := k.Get(ctx, id)
	if err != nil {
		return err
	}
	after, effects, err := session.Apply(before, e, module.Now(ctx))
	if err != nil {
		return errorsmod.Wrapf(ErrEvent, "session %s: %s", id.Short(), err)
	}
	if err := k.carryOut(ctx, effects); err != nil {
		return err
	}
	if from, to := dueAt(&before), dueAt(&after); from != to {
		err = errors.Join(k.due.Remove(ctx, collections.Join(from, id[:])), k.due.Set(ctx, collections.Join(to, id[:])))
	}
	return errors.Join(err, k.put(ctx, &after), k.record(ctx, &before, &after), tell(ctx, &before, &after))
}

// carryOut does what the effects of an event ask for.
func (k *Keeper) carryOut(ctx context.Context, effects []session.Effect) error {
	for i := range effects {
		if err := k.carry(ctx, &effects[i]); err != nil {
			return err
		}
	}
	return nil
}

func (k *Keeper) carry(ctx context.Context, e *session.Effect) error {
	switch e.Kind { // no account is touched
	case session.Burn:
		return k.Burner.Burn(ctx, Name, e.Amount)
	case session.Insure:
		return k.Bank.SendCoinsFromModuleToModule(ctx, Name, k.Insurance, coin.Of(e.Amount))
	}
	account, err := address.Parse(e.Account)
	if err != nil {
		return err
	}
	switch e.Kind {
	case session.Lock:
		if err := k.Bank.SendCoinsFromAccountToModule(ctx, account, Name, coin.Of(e.Amount)); err != nil {
			return errorsmod.Wrapf(err, "lock %d utally", e.Amount)
		}
		return nil
	case session.Pay, session.Refund:
		if err := k.Bank.SendCoinsFromModuleToAccount(ctx, Name, account, coin.Of(e.Amount)); err != nil {
			return errorsmod.Wrapf(err, "pay %d utally to %s", e.Amount, e.Account)
		}
		return nil
	case session.ReserveStake:
		return k.reserve(ctx, account, e.Amount)
	case session.FreeStake:
		return k.Registry.Release(ctx, account, e.Amount)
	case session.SlashStake:
		var payouts []providerv1.Payout
		for _, s := range e.Shares {
			payouts = append(payouts, providerv1.Payout{Account: s.Account, Amount: s.Amount})
		}
		return k.Registry.Slash(ctx, account, e.Amount, 0, payouts)
	}
	return fmt.Errorf("nothing is known of effect %d", e.Kind)
}

// reserve reserves a provider's free stake. The registry would take what is short out of its balance, and who has signed terms
// has said nothing of that.
func (k *Keeper) reserve(ctx context.Context, account sdk.AccAddress, amount uint64) error {
	p, err := k.Registry.Get(ctx, account)
	if err != nil {
		return err
	}
	if free := p.Stake - p.Reserved; amount > free {
		return errorsmod.Wrapf(ErrStake, "the session reserves %d utally, %s has %d free: ask for terms with a smaller cap or more checks, or another provider", amount, p.Account, free)
	}
	return k.Registry.Reserve(ctx, account, amount)
}

// record adds to the provider's record what an event has shown.
func (k *Keeper) record(ctx context.Context, before, after *session.Session) error {
	convicted := before.Convictions.OfProvider == "" && after.Convictions.OfProvider != ""
	settled := after.Phase == session.Ended && after.Ledger.Paid > 0
	if !convicted && !settled {
		return nil
	}
	account, err := address.Parse(after.Terms.Provider.Account)
	if err != nil {
		return err
	}
	r, err := k.Record(ctx, account)
	if err != nil {
		return err
	}
	if convicted {
		r.Convictions++
	}
	if settled {
		r.Settled++
		if r.Paid+after.Ledger.Paid >= r.Paid { // what goes round may add up to more than there is
			r.Paid += after.Ledger.Paid
		}
	}
	return k.records.Set(ctx, account, r)
}

// Record returns what sessions have shown of a provider: nothing, of who has none.
func (k *Keeper) Record(ctx context.Context, provider sdk.AccAddress) (sessionsv1.Record, error) {
	r, err := k.records.Get(ctx, provider)
	if errors.Is(err, collections.ErrNotFound) {
		return sessionsv1.Record{Provider: provider.String()}, nil
	}
	return r, err
}

// tell tells what an event has changed.
func tell(ctx context.Context, before, after *session.Session) (err error) {
	id := after.ID().String()
	if after.Claimed() > before.Claimed() {
		err = module.Emit(ctx, &sessionsv1.EventClaimed{Session: id, Paid: after.Ledger.Paid - before.Ledger.Paid, Burnt: after.Ledger.Burnt - before.Ledger.Burnt})
	}
	for _, side := range []struct{ convict, was, is string }{
		{after.Terms.Consumer.Account, before.Convictions.OfConsumer, after.Convictions.OfConsumer},
		{after.Terms.Provider.Account, before.Convictions.OfProvider, after.Convictions.OfProvider},
	} {
		if side.was != side.is {
			err = errors.Join(err, module.Emit(ctx, &sessionsv1.EventConvicted{Session: id, Convict: side.convict, By: side.is}))
		}
	}
	if before.Phase == after.Phase {
		return err
	}
	return errors.Join(err, tellPhase(ctx, after))
}

func tellPhase(ctx context.Context, s *session.Session) error {
	return module.Emit(ctx, &sessionsv1.EventSession{
		Session: s.ID().String(), Consumer: s.Terms.Consumer.Account, Provider: s.Terms.Provider.Account,
		Phase: wire.PhaseToProto(s.Phase), DueMs: s.Due, Ledger: sessionsv1.Ledger(s.Ledger),
	})
}
