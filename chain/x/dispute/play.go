package dispute

import (
	"context"
	"errors"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/x/provider"
	"github.com/tally-network/tally/chain/x/work"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
)

// Open begins a dispute about the standing attempt of a target, and locks the
// challenger's bond.
func (k *Keeper) Open(ctx context.Context, challenger sdk.AccAddress, order canon.Hash, t job.Target, attempt int, o dispute.Opening) (uint64, error) {
	claim, bond, err := k.work.Claim(ctx, order, t)
	if err != nil {
		return 0, err
	}
	r, err := k.Rules(ctx)
	if err != nil {
		return 0, err
	}
	g, err := dispute.Open(claim, r, o, now(ctx))
	if err != nil {
		return 0, errorsmod.Wrap(ErrOpening, err.Error())
	}
	id, err := k.next.Next(ctx)
	if err != nil {
		return 0, err
	}
	p := disputev1.Parties{
		Order: order.String(), Target: work.TargetToProto(t), Attempt: uint32(attempt),
		Challenger: challenger.String(), Bond: bond, OpenedAt: now(ctx),
	}
	p.Defender, err = k.work.OpenDispute(ctx, order, job.OpenDispute{ID: id, Target: t, Attempt: attempt, Challenger: p.Challenger})
	if err != nil {
		return 0, err
	}
	if err := k.bank.SendCoinsFromAccountToModule(ctx, challenger, Name, coin.Of(bond)); err != nil {
		return 0, errorsmod.Wrapf(err, "lock a challenger's bond of %d utally", bond)
	}
	if err := k.enter(ctx, id, p); err != nil {
		return 0, err
	}
	if err := emit(ctx, &disputev1.EventOpened{Dispute: id, Parties: p}); err != nil {
		return 0, err
	}
	return id, k.step(ctx, id, p, nil, g)
}

// Move plays a move for the side to which player belongs.
func (k *Keeper) Move(ctx context.Context, player string, id uint64, m dispute.Move, size int) error {
	g, p, err := k.Game(ctx, id)
	if err != nil {
		return err
	}
	side, err := sideOf(p, player)
	if err != nil {
		return err
	}
	if g.Stage == dispute.Over {
		return errorsmod.Wrap(ErrOver, g.Reason)
	}
	next, err := dispute.Apply(g, side, m, now(ctx))
	switch {
	case errors.Is(err, dispute.ErrTurn):
		return errorsmod.Wrapf(ErrTurn, "%v", g.Stage)
	case errors.Is(err, dispute.ErrLate):
		return ErrLate
	case err != nil:
		return errorsmod.Wrap(ErrMove, err.Error())
	}
	moved := &disputev1.EventMoved{Side: disputev1.Side(side), Size_: uint32(size), Dispute: view(id, p, &next)}
	if err := emit(ctx, moved); err != nil {
		return err
	}
	return k.step(ctx, id, p, &g, next)
}

func sideOf(p disputev1.Parties, player string) (dispute.Side, error) {
	switch player {
	case p.Defender:
		return dispute.Defender, nil
	case p.Challenger:
		return dispute.Challenger, nil
	}
	return dispute.Nobody, errorsmod.Wrap(ErrStranger, player)
}

// step stores what a game has become, and if it is over ends the dispute.
func (k *Keeper) step(ctx context.Context, id uint64, p disputev1.Parties, before *dispute.Game, g dispute.Game) error {
	if g.Stage != dispute.Over {
		return k.put(ctx, id, before, &g)
	}
	closed := &disputev1.EventClosed{Dispute: view(id, p, &g)}
	g.Trim()
	if err := k.put(ctx, id, before, &g); err != nil {
		return err
	}
	order, err := canon.ParseHash(p.Order)
	if err != nil {
		return err
	}
	if err := k.work.CloseDispute(ctx, order, id, g.Loser); err != nil {
		return err
	}
	if err := k.release(ctx, p, g.Loser); err != nil {
		return err
	}
	return emit(ctx, closed)
}

// release returns the bond of a challenger that was right; of one that was
// wrong, half goes to the defender and the rest to the insurance fund.
func (k *Keeper) release(ctx context.Context, p disputev1.Parties, loser dispute.Side) error {
	winner, amount := p.Challenger, p.Bond
	if loser == dispute.Challenger {
		winner, amount = p.Defender, p.Bond/2
	}
	account, err := address.Parse(winner)
	if err != nil {
		return err
	}
	if err := k.bank.SendCoinsFromModuleToAccount(ctx, Name, account, coin.Of(amount)); err != nil {
		return errorsmod.Wrapf(err, "pay a bond to %s", winner)
	}
	return k.bank.SendCoinsFromModuleToModule(ctx, Name, provider.Insurance, coin.Of(p.Bond-amount))
}

// EndBlock ends the games whose clocks have run out.
func (k *Keeper) EndBlock(ctx context.Context) error {
	var due []uint64
	err := k.deadlines.Walk(ctx, collections.NewPrefixUntilPairRange[int64, uint64](now(ctx)-1),
		func(at collections.Pair[int64, uint64]) (bool, error) {
			due = append(due, at.K2())
			return false, nil
		})
	if err != nil {
		return err
	}
	for _, id := range due {
		err := module.Attempt(ctx, func(ctx context.Context) error {
			g, p, err := k.Game(ctx, id)
			if err != nil {
				return err
			}
			return k.step(ctx, id, p, &g, dispute.Expire(g, now(ctx)))
		})
		if err == nil {
			continue
		}
		if err := emit(ctx, &disputev1.EventStuck{Dispute: id, Reason: err.Error()}); err != nil {
			return err
		}
	}
	return nil
}
