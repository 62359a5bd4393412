package beacon

import (
	"context"
	"errors"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/vrf"
	beaconv1 "github.com/tally-network/tally/gen/tally/beacon/v1"
)

// gasVRF is for checking a proof.
const gasVRF = 3_000

// maxCounted is how many failed rounds of a block are counted: whoever fails more makes
// everybody wait for longer each time.
const maxCounted = 16

type msgServer struct{ *Keeper }

// Check returns the output that a proof shows, if it is that of this block's proposer.
func (k *Keeper) Check(ctx context.Context, m *beaconv1.MsgProve) (vrf.Output, error) {
	account, key, err := k.KeyOf(ctx, sdk.UnwrapSDKContext(ctx).BlockHeader().ProposerAddress)
	if err != nil {
		return vrf.Output{}, errorsmod.Wrap(ErrProof, err.Error())
	}
	if m.Account != account.String() {
		return vrf.Output{}, errorsmod.Wrapf(ErrProof, "it is %q's, the block is proposed by %s", m.Account, account)
	}
	input, err := k.Input(ctx)
	if err != nil {
		return vrf.Output{}, err
	}
	module.Charge(ctx, gasVRF, "vrf")
	output, err := vrf.Verify(key, input, m.Proof)
	if err != nil {
		return vrf.Output{}, errorsmod.Wrap(ErrProof, err.Error())
	}
	return output, nil
}

// Prove gives the value of this block.
func (s msgServer) Prove(ctx context.Context, m *beaconv1.MsgProve) (*beaconv1.MsgProveResponse, error) {
	output, err := s.Check(ctx, m)
	if err != nil {
		return nil, err
	}
	if err := s.countWithheld(ctx); err != nil {
		return nil, err
	}
	state, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	c, err := s.Calendar(ctx)
	if err != nil {
		return nil, err
	}
	height := sdk.UnwrapSDKContext(ctx).BlockHeight()
	if err := state.Advance(c, height, output[:]); err != nil {
		return nil, errorsmod.Wrap(ErrProof, err.Error())
	}
	if err := s.state.Set(ctx, stateToProto(&state)); err != nil {
		return nil, err
	}
	return &beaconv1.MsgProveResponse{Value: state.Value[:]},
		module.Emit(ctx, &beaconv1.EventValue{Value: state.Value[:], Epoch: c.At(height), Proposer: m.Account})
}

// countWithheld counts whose turns passed in the block before, if that gave a value. How many
// rounds a block took is known only in the next one.
func (s msgServer) countWithheld(ctx context.Context) error {
	// The proof has a limit of gas, and counting is bounded by itself.
	c := sdk.UnwrapSDKContext(ctx).WithGasMeter(storetypes.NewInfiniteGasMeter())
	ctx = c
	last, err := s.get(ctx)
	before := c.BlockHeight() - 1
	if err != nil || last.Height != before || c.CometInfo() == nil {
		return err
	}
	failed := min(c.CometInfo().GetLastCommit().Round(), maxCounted)
	if failed == 0 {
		return nil
	}
	passed, err := s.validators.Turns(ctx, before, int(failed))
	if err != nil {
		return err
	}
	for _, account := range passed {
		key, err := s.keys.Get(ctx, account)
		if errors.Is(err, collections.ErrNotFound) {
			continue // who has no key can give no value
		} else if err != nil {
			return err
		}
		key.Withheld++
		err = errors.Join(s.keys.Set(ctx, account, key), module.Emit(ctx, &beaconv1.EventWithheld{Account: account.String(), Withheld: key.Withheld}))
		if err != nil {
			return err
		}
	}
	return nil
}

// SetKey changes the key of a validator. Until it counts, another may take its place.
func (s msgServer) SetKey(ctx context.Context, m *beaconv1.MsgSetKey) (*beaconv1.MsgSetKeyResponse, error) {
	account, err := address.Parse(m.Account)
	if err != nil {
		return nil, errorsmod.Wrap(ErrValidator, err.Error())
	}
	if ok, err := s.validators.Has(ctx, account); err != nil {
		return nil, err
	} else if !ok {
		return nil, ErrValidator
	}
	from, err := s.Register(ctx, account, m.Key)
	return &beaconv1.MsgSetKeyResponse{From: from}, err
}
