package work

import (
	"context"
	"fmt"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// defaultJail is a day, maxJail a year, in ms.
const (
	defaultJail = 24 * 3600 * 1000
	maxJail     = 365 * defaultJail
)

// Retention bounds, in ms. After a week whoever wants a bundle has made one. A year's orders that
// stay are more than a node should hold (docs/operating.md).
const (
	defaultRetention = 7 * 24 * 3600 * 1000
	maxRetention     = 365 * 24 * 3600 * 1000
)

// readParams returns the rules that m holds, or an error if they cannot be kept.
func readParams(m workv1.Params) (job.Params, error) {
	p := wire.ParamsFromProto(m)
	if m.JailMs < 0 || m.JailMs > maxJail {
		return p, fmt.Errorf("jail of %d ms, want between 0 and %d", m.JailMs, int64(maxJail))
	}
	if m.RetentionMs < 0 || m.RetentionMs > maxRetention {
		return p, fmt.Errorf("retention of %d ms, want between 0 (for good) and %d", m.RetentionMs, int64(maxRetention))
	}
	return p, p.Check()
}

// checkGenesisParams checks the rules of a genesis. It may turn forced errors off;
// where they are on, the rules must be in equilibrium.
func checkGenesisParams(m workv1.Params) error {
	p, err := readParams(m)
	if err != nil || p.ForcedBps == 0 {
		return err
	}
	return p.Equilibrium()
}

// checkParams returns an error if rules would make cheating or laziness pay, with
// the inequality that they break.
func checkParams(_, m workv1.Params) error {
	p, err := readParams(m)
	if err != nil {
		return err
	}
	return p.Equilibrium()
}

// UpdateParams replaces the rules for new leases.
func (s msgServer) UpdateParams(ctx context.Context, m *workv1.MsgUpdateParams) (*workv1.MsgUpdateParamsResponse, error) {
	if err := s.rules.Replace(ctx, m.Authority, m.Params); err != nil {
		return nil, err
	}
	return &workv1.MsgUpdateParamsResponse{}, module.Emit(ctx, &workv1.EventParams{Params: m.Params})
}
