package work

import (
	"context"

	errorsmod "cosmossdk.io/errors"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/vrf"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// ProveDraw shows whether an attempt was forced. If it was, disputes about its receipt
// are over: nobody has lost them.
func (s msgServer) ProveDraw(ctx context.Context, m *workv1.MsgProveDraw) (*workv1.MsgProveDrawResponse, error) {
	id, err := orderID(m.Order)
	if err != nil {
		return nil, err
	}
	truth, err := wire.OutcomesFromProto(m.Truth)
	if err != nil {
		return nil, errorsmod.Wrapf(ErrMalformed, "truth: %s", err)
	}
	e := job.ProveDraw{By: m.Provider, Unit: int(m.Unit), Attempt: int(m.Attempt), Truth: truth}
	before, err := s.before(ctx, id, e)
	if err != nil {
		return nil, err
	}
	output, err := s.forcedDraw(ctx, &before.Lease, m)
	if err != nil {
		return nil, err
	}
	e.Output = output[:]
	_, err = s.applyLoaded(ctx, id, before, e)
	return &workv1.MsgProveDrawResponse{}, err
}

// forcedDraw returns the output of a provider's VRF for an attempt, under the key that it
// had when the lease began.
func (s msgServer) forcedDraw(ctx context.Context, l *job.Lease, m *workv1.MsgProveDraw) (vrf.Output, error) {
	if int(m.Unit) >= len(l.Units) {
		return vrf.Output{}, errorsmod.Wrapf(ErrRefused, "the order has no unit %d, only %d of them", m.Unit, len(l.Units))
	}
	for _, p := range l.Providers {
		if p.Account != m.Provider {
			continue
		}
		module.Charge(ctx, gasVRF, "vrf")
		output, err := vrf.Verify(p.VRF, proof.ForcedDrawInput(l.Order.ID(), l.Units[m.Unit].Seed, int(m.Unit), int(m.Attempt)), m.Proof)
		if err != nil {
			return output, errorsmod.Wrap(ErrProof, err.Error())
		}
		return output, nil
	}
	return vrf.Output{}, errorsmod.Wrapf(ErrRefused, "%s is not a provider of this lease", m.Provider)
}
