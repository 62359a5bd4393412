// Package policy counts votes of computing power on changes of rules.
//
// Begin with [Rules], by which a vote is held, and [Tally], to which each vote is added as it is cast.
// [Rules.Missing] and [Share] say what the founders of a chain vote while there is little power.
//
// Invariants: a tally is the sum of the votes in it, whatever their order. Power at the start of a vote
// and what the founders add to it are at most the base, or that power.
//
// Source: docs/spec/policy.md.
package policy

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"

	"github.com/tally-network/tally/core/money"
)

// Bounds on rules. Within them a vote can always be held, and always ends.
const (
	MaxPower    = 1 << 62                // 10⁻⁶ ut; sums of two fit
	MaxDeposit  = 1 << 44                // utally: doubled for each open proposal it still fits
	MaxOpen     = 16                     // proposals that are voted on at once
	MaxTime     = 90 * 24 * 3_600_000    // ms of a vote, and of the delay
	MinTime     = 1_000                  // ms of a vote, and of the delay
	bps         = 10_000                 // of a whole
	majorityBps = 5_000                  // the least threshold
	maxFounders = 1 << 10                // whose weights are added up
	maxWeight   = MaxPower / maxFounders // of a founder
)

// Rules are those of a vote. Power is in millionths of a ut, money in utally, time in milliseconds.
type Rules struct {
	Base         uint64 // as far as power falls short of it, the founders vote
	Quorum       uint64 // the least that must take part
	ThresholdBps uint32 // yes must be above this share of yes, no and veto
	VetoBps      uint32 // veto must be below this share of all that took part
	Deposit      uint64 // while no proposal is open
	MaxOpen      uint32
	VotingMs     int64
	DelayMs      int64
}

// Check returns an error that shows why votes could not be held by the rules.
func (r Rules) Check() error {
	switch {
	case r.Base < 1 || r.Base > MaxPower:
		return fmt.Errorf("base = %d: want between 1 and %d", r.Base, uint64(MaxPower))
	case r.Quorum < 1 || r.Quorum > r.Base:
		return fmt.Errorf("where power is at the base, a vote needs more than there is, or nobody: quorum = %d, base = %d", r.Quorum, r.Base)
	case r.ThresholdBps < majorityBps || r.ThresholdBps >= bps:
		return fmt.Errorf("a minority would decide, or nobody could: threshold_bps = %d: want between %d and %d", r.ThresholdBps, majorityBps, bps-1)
	case r.VetoBps < 1 || r.VetoBps > majorityBps:
		return fmt.Errorf("nobody's veto would burn a deposit, or a majority could not: veto_bps = %d: want between 1 and %d", r.VetoBps, majorityBps)
	case r.Deposit < 1 || r.Deposit > MaxDeposit:
		return fmt.Errorf("proposals would cost nothing, or nobody could make one: deposit = %d: want between 1 and %d utally", r.Deposit, uint64(MaxDeposit))
	case r.MaxOpen < 1 || r.MaxOpen > MaxOpen:
		return fmt.Errorf("max_open = %d: want between 1 and %d", r.MaxOpen, MaxOpen)
	case r.VotingMs < MinTime || r.VotingMs > MaxTime:
		return fmt.Errorf("voting_ms = %d: want between %d and %d", r.VotingMs, MinTime, int64(MaxTime))
	case r.DelayMs < MinTime || r.DelayMs > MaxTime:
		return fmt.Errorf("nobody could leave before a change, or it would never come: delay_ms = %d: want between %d and %d", r.DelayMs, MinTime, int64(MaxTime))
	}
	return nil
}

// DepositOf returns the utally that a proposal deposits while so many are open: each doubles it, so that
// whoever fills all places pays for it.
func (r Rules) DepositOf(open int) uint64 { return r.Deposit << min(max(open, 0), MaxOpen) }

// Missing returns by how much power falls short of the base: what the founders vote together.
func (r Rules) Missing(power uint64) uint64 { return r.Base - min(r.Base, power) }

// Share returns the part of what is missing that a founder of a weight among all weights votes, rounded
// down.
func Share(missing, weight, all uint64) (uint64, error) {
	if all == 0 || weight > all {
		return 0, fmt.Errorf("a founder has the weight %d of %d", weight, all)
	}
	return money.ScaleDown(missing, weight, all)
}

// Weights adds up the weights of founders.
func Weights(ws []uint64) (sum uint64, err error) {
	if len(ws) > maxFounders {
		return 0, fmt.Errorf("%d founders, want at most %d", len(ws), maxFounders)
	}
	for _, w := range ws {
		if w < 1 || w > maxWeight {
			return 0, fmt.Errorf("a founder has the weight %d: want between 1 and %d", w, uint64(maxWeight))
		}
		sum += w
	}
	return sum, nil
}

// Option is what a vote is for.
type Option int

// The options. Whoever vetoes says no, and that the deposit should be burnt. Whoever abstains takes part, and
// decides nothing.
const (
	Yes Option = iota + 1
	No
	Veto
	Abstain
)

// ErrOption is returned for an option that there is not.
var ErrOption = errors.New("no such option: vote yes, no, veto or abstain")

// Tally is the power that has voted for each option, in millionths of a ut.
type Tally struct{ Yes, No, Veto, Abstain uint64 }

func (t *Tally) of(o Option) (*uint64, error) {
	switch o {
	case Yes:
		return &t.Yes, nil
	case No:
		return &t.No, nil
	case Veto:
		return &t.Veto, nil
	case Abstain:
		return &t.Abstain, nil
	}
	return nil, ErrOption
}

// Add counts a vote.
func (t *Tally) Add(o Option, weight uint64) error {
	x, err := t.of(o)
	if err != nil {
		return err
	}
	if _, err := money.Sum(t.Yes, t.No, t.Veto, t.Abstain, weight); err != nil {
		return fmt.Errorf("more power votes than there is: %w", err)
	}
	*x += weight
	return nil
}

// Remove takes a vote back that was counted.
func (t *Tally) Remove(o Option, weight uint64) error {
	x, err := t.of(o)
	if err != nil {
		return err
	}
	if *x < weight {
		return fmt.Errorf("a vote of %d was counted among %d", weight, *x)
	}
	*x -= weight
	return nil
}

// Turnout is all that took part.
func (t Tally) Turnout() uint64 { return t.Yes + t.No + t.Veto + t.Abstain }

// Outcome is how a vote ends.
type Outcome int

// The outcomes.
const (
	Rejected Outcome = iota
	NoQuorum
	Vetoed
	Passed
)

// Outcome returns how a vote ends by the rules. Shares are compared exactly.
func (r Rules) Outcome(t Tally) Outcome {
	switch decided := t.Yes + t.No + t.Veto; {
	case t.Turnout() < r.Quorum:
		return NoQuorum
	case t.Veto > 0 && compare(t.Veto, t.Turnout(), r.VetoBps) >= 0:
		return Vetoed
	case t.Yes > 0 && compare(t.Yes, decided, r.ThresholdBps) > 0:
		return Passed
	}
	return Rejected
}

// compare compares part with a share of a whole: part·10⁴ with whole·share.
func compare(part, whole uint64, share uint32) int {
	ah, al := bits.Mul64(part, bps)
	bh, bl := bits.Mul64(whole, uint64(share))
	return cmp.Or(cmp.Compare(ah, bh), cmp.Compare(al, bl))
}
