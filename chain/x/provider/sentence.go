package provider

import (
	"context"
	"errors"

	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/match"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// Jail keeps new work from a peer until a protocol time in ms. It never shortens a
// sentence.
func (k *Keeper) Jail(ctx context.Context, account sdk.AccAddress, until int64) error {
	longer, err := lock(ctx, k, account, until)
	if err != nil || !longer {
		return err
	}
	return module.Emit(ctx, &providerv1.EventJailed{Account: account.String(), Until: until})
}

// lock keeps new work from a peer until a protocol time, and reports whether that is later than it was.
func lock(ctx context.Context, k *Keeper, account sdk.AccAddress, until int64) (longer bool, err error) {
	return edit(ctx, k, account, func(p *providerv1.Peer) bool {
		had := p.JailedUntil
		p.JailedUntil = max(had, until)
		return until > had
	})
}

// Exclude gives no new work, ever, to a peer and to all that its owner has. An owner is stored once, and asked for where work is given:
// that costs the same for one peer or thousands.
func (k *Keeper) Exclude(ctx context.Context, account, owner sdk.AccAddress) error {
	if _, err := lock(ctx, k, account, wire.Forever); err != nil {
		return err
	}
	if !owner.Equals(account) {
		if _, err := lock(ctx, k, owner, wire.Forever); err != nil && !errors.Is(err, ErrNotRegistered) {
			return err
		}
	}
	if err := k.excluded.Set(ctx, owner); err != nil {
		return err
	}
	return module.Emit(ctx, &providerv1.EventExcluded{Account: account.String(), Owner: owner.String()})
}

// mayWork returns an error if an account is excluded, and with it all that it owns.
func (c candidates) mayWork(ctx context.Context, owner string) error {
	gone, err := c.isExcluded(ctx, owner)
	if err == nil && gone {
		err = errorsmod.Wrap(ErrExcluded, owner)
	}
	return err
}

// isExcluded reports whether the peers of an owner get no new work any more. A peer without an owner is not looked up: JailedUntil
// says it.
func (c candidates) isExcluded(ctx context.Context, owner string) (bool, error) {
	if owner == "" {
		return false, nil
	}
	account, err := address.Parse(owner)
	if err != nil {
		return false, err
	}
	return c.excluded.Has(ctx, account)
}

// Falter tells that a validator did not do what was due as a lead: it may lead less.
func (k *Keeper) Falter(ctx context.Context, validator sdk.AccAddress) error {
	_, err := edit(ctx, k, validator, func(p *providerv1.Peer) bool {
		p.Lapsed = uint32(match.Lapse(p.Lapsed).Fail())
		return true
	})
	return err
}

// Mend tells that a validator led to the end what so many utally were paid for: it gets back some of what it may lead.
func (k *Keeper) Mend(ctx context.Context, validator sdk.AccAddress, paid uint64) error {
	_, err := edit(ctx, k, validator, func(p *providerv1.Peer) bool {
		had := p.Lapsed
		p.Lapsed = uint32(match.Lapse(had).Mend(paid, p.Stake))
		return p.Lapsed != had
	})
	return err
}
