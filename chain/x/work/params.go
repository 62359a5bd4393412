package work

import (
	"context"
	"fmt"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/reserve"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// defaultJail is a day, defaultAbsence thirty, maxJail a year, in ms.
const (
	defaultJail    = 24 * 3600 * 1000
	defaultAbsence = 30 * defaultJail
	maxJail        = 365 * defaultJail
)

// minBurnUT is the least that a vote may have burnt for a ut of credit, in utally: more than rewards for
// it may ever be.
const minBurnUT = reserve.MaxCap + 1

// Retention bounds, in ms. After a week whoever wants a bundle has made one. A year's orders that
// stay are more than a node should hold (docs/operating.md).
const (
	defaultRetention = 7 * 24 * 3600 * 1000
	maxRetention     = 365 * 24 * 3600 * 1000
)

// readParams returns the rules that m holds, or an error if they cannot be kept.
func readParams(m workv1.Params) (job.Params, error) {
	p := wire.ParamsFromProto(m)
	for _, ms := range []int64{m.JailMs, m.AbsenceMs} {
		if ms < 0 || ms > maxJail {
			return p, fmt.Errorf("jail of %d ms, want between 0 and %d", ms, int64(maxJail))
		}
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
func checkParams(old, m workv1.Params) error {
	p, err := readParams(m)
	if err != nil {
		return err
	}
	if err := p.Equilibrium(); err != nil {
		return err
	}
	return module.Within(bounds(&old, &m)...)
}

// Amounts of utally, and times in ms, that bound rules.
const (
	cent   = 10_000
	grand  = 10_000_000_000 // ten thousand tally
	minute = 60_000
	day    = 24 * 60 * minute
)

// bounds are what a vote may set. docs/spec/rules.md says why.
func bounds(old, p *workv1.Params) []module.Bound {
	bound := func(name string, old, p, least, most uint64) module.Bound {
		return module.Bound{Name: name, Old: old, New: p, Least: least, Most: most}
	}
	count := func(name string, old, p uint32, least, most uint64) module.Bound {
		return bound(name, uint64(old), uint64(p), least, most)
	}
	return []module.Bound{
		bound("custodian_bps", old.CustodianBps, p.CustodianBps, 0, 5_000),
		bound("burn_bps", old.BurnBps, p.BurnBps, 0, 5_000),
		bound("reward_bps", old.RewardBps, p.RewardBps, 0, 4_999),
		bound("late_bps", old.LateBps, p.LateBps, 0, 10_000),
		bound("bond_factor", old.BondFactor, p.BondFactor, 2, 100),
		count("max_open", old.MaxOpen, p.MaxOpen, 1, 64),
		count("max_late", old.MaxLate, p.MaxLate, 0, 64),
		module.Signed("lead_timeout_ms", old.LeadTimeoutMs, p.LeadTimeoutMs, minute, 7*day),
		bound("challenge_bond", old.ChallengeBond, p.ChallengeBond, cent, grand),
		module.Signed("jail_ms", old.JailMs, p.JailMs, 0, maxJail),
		module.Signed("absence_ms", old.AbsenceMs, p.AbsenceMs, 0, maxJail),
		bound("verdict_factor", old.VerdictFactor, p.VerdictFactor, 1, 1_000),
		bound("keep_factor", old.KeepFactor, p.KeepFactor, 1, 1_000),
		bound("ask_fee", old.AskFee, p.AskFee, 1, grand),
		module.Signed("answer_ms", old.AnswerMs, p.AnswerMs, minute/6, 7*day),
		count("answer_load", old.AnswerLoad, p.AnswerLoad, 1, job.MaxUnits),
		bound("tax_bps", old.TaxBps, p.TaxBps, 0, 5_000),
		bound("forced_bps", old.ForcedBps, p.ForcedBps, 1, 2_000),
		bound("jackpot_factor", old.JackpotFactor, p.JackpotFactor, 0, 1_000),
		bound("speed", old.Speed, p.Speed, 1e6, 1e15),
		count("max_attempts", old.MaxAttempts, p.MaxAttempts, 2, 1_024),
		bound("link", old.Link, p.Link, 1e3, 1e12),
		module.Signed("allowance_ms", old.AllowanceMs, p.AllowanceMs, 0, 60*minute),
		bound("keep_gb", old.KeepGb, p.KeepGb, 0, 100_000_000),
		bound("deposit_bps", old.DepositBps, p.DepositBps, 0, 5_000),
		bound("min_deposit", old.MinDeposit, p.MinDeposit, 0, grand),
		module.Signed("retention_ms", old.RetentionMs, p.RetentionMs, day, maxRetention),
		bound("burn_ut", old.BurnUt, p.BurnUt, minBurnUT, 1_000_000),
		bound("min_bond", old.MinBond, p.MinBond, cent, grand),
	}
}

// UpdateParams replaces the rules for new leases.
func (s msgServer) UpdateParams(ctx context.Context, m *workv1.MsgUpdateParams) (*workv1.MsgUpdateParamsResponse, error) {
	if err := s.rules.Replace(ctx, m.Authority, m.Params); err != nil {
		return nil, err
	}
	return &workv1.MsgUpdateParamsResponse{}, module.Emit(ctx, &workv1.EventParams{Params: m.Params})
}
