package seats

import (
	"context"
	"errors"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/vrf"
	"github.com/tally-network/tally/chain/wire"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
)

// prove takes the output of a member's VRF for the draw under way.
func (k draws) prove(ctx context.Context, account sdk.AccAddress, epoch uint64, proof []byte) error {
	d, m, err := k.prover(ctx, account, epoch)
	if err != nil {
		return err
	}
	key, err := k.beacon.Key(ctx, account)
	if err != nil {
		return errorsmod.Wrap(ErrDraw, err.Error())
	}
	module.Charge(ctx, gasVRF, "vrf")
	output, err := vrf.Verify(key, wire.SeatInput(d.Value, epoch), proof)
	if err != nil {
		return errorsmod.Wrap(ErrDraw, err.Error())
	}
	m.Output, m.OutputEpoch = output[:], epoch
	return k.put(ctx, m)
}

// HasToProve reports whether an account has no seats in an epoch unless it proves now.
func (k *Keeper) HasToProve(ctx context.Context, account string, epoch uint64) bool {
	a, err := address.Parse(account)
	if err == nil {
		_, _, err = draws{k}.prover(ctx, a, epoch)
	}
	return err == nil
}

// prover returns the draw under way and a member that has to prove for it, or why nothing is to be proved.
func (k draws) prover(ctx context.Context, account sdk.AccAddress, epoch uint64) (d seatsv1.Draw, m seatsv1.Member, err error) {
	p, err := k.rules.Get(ctx)
	if err != nil {
		return d, m, err
	}
	d, err = k.drawing.Get(ctx)
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return d, m, err
	}
	if err != nil || d.Epoch != epoch || p.Allocation != Proofs || sdk.UnwrapSDKContext(ctx).BlockHeight() >= d.WalkHeight {
		return d, m, errorsmod.Wrapf(ErrDraw, "none waits for proofs in epoch %d", epoch)
	}
	m, err = k.Get(ctx, account)
	if err == nil && (m.OutputEpoch == epoch || m.FromEpoch > epoch || m.Status != seatsv1.STATUS_ACTIVE) {
		err = errorsmod.Wrapf(ErrDraw, "%s has proved in it, or is not drawn", account)
	}
	return d, m, err
}
