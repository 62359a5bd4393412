package market

import (
	"context"
	"errors"

	errorsmod "cosmossdk.io/errors"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
)

// Escrow returns the utally locked for an order.
func (k *Keeper) Escrow(ctx context.Context, order canon.Hash) (uint64, error) {
	p, err := k.postings.Get(ctx, order[:])
	return p.Escrow, err
}

// Pay pays an account out of the escrow of a leased order.
func (k *Keeper) Pay(ctx context.Context, order canon.Hash, account string, amount uint64) error {
	if err := k.take(ctx, order, amount); err != nil {
		return err
	}
	if err := k.send(ctx, account, amount); err != nil {
		return err
	}
	return module.Emit(ctx, &marketv1.EventPaid{Order: order.String(), Account: account, Amount: amount})
}

// Burn destroys a part of the escrow of a leased order.
func (k *Keeper) Burn(ctx context.Context, order canon.Hash, amount uint64) error {
	if err := k.take(ctx, order, amount); err != nil {
		return err
	}
	return k.burner.Burn(ctx, Name, amount)
}

// Tax moves a part of the escrow of a leased order to another module's account.
func (k *Keeper) Tax(ctx context.Context, order canon.Hash, to string, amount uint64) error {
	if err := k.take(ctx, order, amount); err != nil {
		return err
	}
	return k.bank.SendCoinsFromModuleToModule(ctx, Name, to, coin.Of(amount))
}

// Settle ends a leased order: what is left in escrow, which must be refund
// utally, goes back to the consumer.
func (k *Keeper) Settle(ctx context.Context, order canon.Hash, refund uint64) error {
	o, p, err := k.Order(ctx, order)
	if err != nil {
		return err
	}
	if p.Status != marketv1.STATUS_LEASED {
		return errorsmod.Wrapf(ErrNotLeased, "order %s is %s", order, wire.NameOf(p.Status))
	}
	if p.Escrow != refund {
		return errorsmod.Wrapf(ErrEscrow, "%d utally are left for order %s, %d are to be refunded", p.Escrow, order, refund)
	}
	return k.close(ctx, order, o.Consumer, p, marketv1.STATUS_SETTLED)
}

// close ends an order and refunds its escrow.
func (k *Keeper) close(ctx context.Context, id canon.Hash, consumer string, p marketv1.Posting, end marketv1.Status) error {
	after := p
	after.Status, after.Escrow = end, 0
	if err := k.send(ctx, consumer, p.Escrow); err != nil {
		return err
	}
	if err := errors.Join(k.put(ctx, id, p, after), k.projects.Close(ctx, id)); err != nil {
		return err
	}
	return module.Emit(ctx, &marketv1.EventClosed{Order: id.String(), Status: end, Refund: p.Escrow})
}

// take lowers the escrow of a leased order.
func (k *Keeper) take(ctx context.Context, order canon.Hash, amount uint64) error {
	p, err := k.postings.Get(ctx, order[:])
	if err != nil {
		return err
	}
	if p.Status != marketv1.STATUS_LEASED {
		return errorsmod.Wrapf(ErrNotLeased, "order %s is %s", order, wire.NameOf(p.Status))
	}
	if amount > p.Escrow {
		return errorsmod.Wrapf(ErrEscrow, "order %s has %d utally, %d are to be paid", order, p.Escrow, amount)
	}
	after := p
	after.Escrow -= amount
	return k.put(ctx, order, p, after)
}

// send pays utally of the module's account to somebody.
func (k *Keeper) send(ctx context.Context, account string, amount uint64) error {
	if amount == 0 {
		return nil
	}
	to, err := address.Parse(account)
	if err != nil {
		return err
	}
	if err := k.bank.SendCoinsFromModuleToAccount(ctx, Name, to, coin.Of(amount)); err != nil {
		return errorsmod.Wrapf(err, "pay %d utally of escrow to %s", amount, account)
	}
	return nil
}
