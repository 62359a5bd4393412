package wire

import (
	"math"

	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// Forever is the JailedUntil of an excluded peer.
const Forever = math.MaxInt64

// Sentences say for how many ms who is jailed gets no new work, by offence.
type Sentences struct{ Carelessness, Absence int64 }

// ParamsToProto returns p and the sentences as genesis files and queries carry them.
func ParamsToProto(p job.Params, s Sentences) workv1.Params {
	return workv1.Params{
		CustodianBps: p.CustodianBps, BurnBps: p.BurnBps, RewardBps: p.RewardBps, LateBps: p.LateBps, BondFactor: p.BondFactor,
		MaxOpen: uint32(p.MaxOpen), MaxLate: uint32(p.MaxLate), MaxAttempts: uint32(p.MaxAttempts), LeadTimeoutMs: p.LeadTimeout, ChallengeBond: p.ChallengeBond,
		JailMs: s.Carelessness, AbsenceMs: s.Absence, VerdictFactor: p.VerdictFactor,
		KeepFactor: p.KeepFactor, AskFee: p.AskFee, AnswerMs: p.AnswerTime, AnswerLoad: uint32(p.AnswerLoad),
		TaxBps: p.TaxBps, ForcedBps: p.ForcedBps, JackpotFactor: p.JackpotFactor,
		Speed: p.Speed, Link: p.Link, AllowanceMs: p.Allowance, KeepGb: p.KeepGB,
		DepositBps: p.DepositBps, MinDeposit: p.MinDeposit, BurnUt: p.BurnUT, MinBond: p.MinBond, AllLose: p.AllLose,
	}
}

// ParamsFromProto is the inverse of ParamsToProto, without the sentences.
func ParamsFromProto(m workv1.Params) job.Params {
	return job.Params{
		Tariff: job.Tariff{
			CustodianBps: m.CustodianBps, BurnBps: m.BurnBps, TaxBps: m.TaxBps, KeepGB: m.KeepGb, BurnUT: m.BurnUt,
			ForcedBps: m.ForcedBps, JackpotFactor: m.JackpotFactor, AllLose: m.AllLose,
		},
		RewardBps: m.RewardBps, LateBps: m.LateBps, BondFactor: m.BondFactor,
		MaxOpen: int(m.MaxOpen), MaxLate: int(m.MaxLate), MaxAttempts: int(m.MaxAttempts), LeadTimeout: m.LeadTimeoutMs, ChallengeBond: m.ChallengeBond,
		VerdictFactor: m.VerdictFactor,
		KeepFactor:    m.KeepFactor, AskFee: m.AskFee, AnswerTime: m.AnswerMs, AnswerLoad: int(m.AnswerLoad),
		Speed: m.Speed, Link: m.Link, Allowance: m.AllowanceMs,
		DepositBps: m.DepositBps, MinDeposit: m.MinDeposit, MinBond: m.MinBond,
	}
}

// RulesToProto returns the rules of disputes as genesis files and queries carry them.
func RulesToProto(r dispute.Rules) disputev1.Params {
	return disputev1.Params{Depth: uint32(r.Depth), ClockMs: r.Clock, AnswerMs: r.Answer, Parallel: uint32(r.Parallel)}
}

// RulesFromProto is the inverse of RulesToProto.
func RulesFromProto(m disputev1.Params) dispute.Rules {
	return dispute.Rules{Depth: int(m.Depth), Clock: m.ClockMs, Answer: m.AnswerMs, Parallel: int(m.Parallel)}
}
