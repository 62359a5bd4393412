// Package reserve says what is paid as rewards, out of tokens that a chain has held since its genesis.
//
// Begin with [Rules]. Work that is credited, and who has made blocks, is counted in an [Epoch]. [Rules.Close]
// says what that pays at its end, and each [Pot] is divided by [Pot.Take]. A [Stream] divides what
// comes in by and by.
//
// Invariants: an epoch pays at most its part of what is held, of which half lasts for [Rules.Halving] epochs or
// longer. All rewards for a unit of computing power together are at most [Rules.Cap], and so below what was burnt for it. What is
// taken of a pot is at most the pot, in whatever order, and an account gets what it would have got at once.
//
// Source: docs/spec/reserve.md.
package reserve

import (
	"errors"
	"fmt"

	"github.com/tally-network/tally/core/money"
)

// MaxCap is the most utally that rules may let a ut earn. Rules burn more for it: so nobody computes for itself
// to be rewarded.
const MaxCap = 999

// MaxHalving is the most epochs.
const MaxHalving = 1 << 32

const (
	bps     = 10_000
	microUT = 1_000_000 // in a ut
	maxUT   = 1 << 32   // of joining
)

// Kind is what a pot is divided by.
type Kind int

// The kinds of pots.
const (
	Seats    Kind = iota // votes of validators that have made a block in the epoch
	Drilling             // drilling that was credited, in millionths of a ut
	Joining              // the first work of accounts, likewise
	Kinds                // how many there are
)

// Rules say what epochs pay.
type Rules struct {
	Halving   uint64 // epochs for which half of what is held lasts at least
	Cap       uint64 // utally that one ut earns at most, all shares together
	Bps       [Kinds]uint32
	Jackpot   uint32 // of rewards, to the jackpot pool, in bps
	Insurance uint32 // likewise, to the insurance fund
	JoiningUT uint64 // ut that count as an account's first
}

// Check returns an error that shows what is wrong with rules.
func (r Rules) Check() error {
	sum := uint64(r.Jackpot) + uint64(r.Insurance)
	for _, x := range r.Bps {
		sum += uint64(x)
	}
	switch {
	case r.Halving < 1 || r.Halving > MaxHalving:
		return fmt.Errorf("halving_epochs = %d: want between 1 and %d", r.Halving, uint64(MaxHalving))
	case r.Cap > MaxCap:
		return fmt.Errorf("who orders from itself could earn more than that burns: cap = %d utally for a ut, want at most %d", r.Cap, MaxCap)
	case sum > bps:
		return fmt.Errorf("the shares add up to %d bps, want at most %d", sum, bps)
	case r.JoiningUT > maxUT:
		return fmt.Errorf("joining_ut = %d: want at most %d", r.JoiningUT, uint64(maxUT))
	}
	return nil
}

// ln2 is the natural logarithm of 2, in millionths and rounded down.
const ln2 = 693_147

// Budget returns what an epoch pays at most, of what is held and owed to nobody: less than ln 2 of it over
// the epochs of a halving, so that after these (1 − ln 2 / Halving)^Halving ≥ ½ of it is left.
func (r Rules) Budget(held uint64) uint64 {
	return held / (r.Halving*1_000_000/ln2 + 2)
}

// First returns how much of a credit counts as an account's first work, by the work that it was credited with
// before; in millionths of a ut.
func (r Rules) First(micro, before uint64) uint64 {
	first := r.JoiningUT * microUT
	return min(micro, first-min(first, before))
}

// Epoch counts what rewards are for.
type Epoch struct {
	Number   int64
	Credited uint64 // millionths of a ut
	Weights  [Kinds]uint64
}

// Count adds work, and by what pots are divided.
func (e *Epoch) Count(micro uint64, w [Kinds]uint64) (err error) {
	if e.Credited, err = money.Sum(e.Credited, micro); err != nil {
		return fmt.Errorf("an epoch's work: %w", err)
	}
	for k := range w {
		if e.Weights[k], err = money.Sum(e.Weights[k], w[k]); err != nil {
			return fmt.Errorf("an epoch's weights: %w", err)
		}
	}
	return nil
}

// Payout is what an epoch pays.
type Payout struct {
	Pots               [Kinds]Pot
	Jackpot, Insurance uint64
}

// Owed returns what is left in the pots.
func (p *Payout) Owed() (sum uint64) {
	for k := range p.Pots {
		sum += p.Pots[k].LeftPay // no overflow: it was part of what is held
	}
	return sum
}

// Left reports whether anybody has still to take its part.
func (p *Payout) Left() bool {
	for k := range p.Pots {
		if p.Pots[k].LeftWeight > 0 {
			return true
		}
	}
	return false
}

// Close returns what an epoch pays. A share is of the budget, and of the cap for all work that it rewards,
// whichever is less. What is over stays.
func (r Rules) Close(held uint64, e *Epoch) (p Payout, err error) {
	budget := r.Budget(held)
	share := func(of uint32, micro uint64) uint64 {
		capped, e1 := money.ScaleDown(micro, r.Cap*uint64(of), bps*microUT)
		part, e2 := money.ScaleDown(budget, uint64(of), bps)
		err = errors.Join(err, e1, e2)
		return min(capped, part)
	}
	for k := range p.Pots {
		rewarded := e.Credited
		if Kind(k) != Seats {
			rewarded = e.Weights[k]
		}
		if pay := share(r.Bps[k], rewarded); pay > 0 && e.Weights[k] > 0 {
			p.Pots[k] = NewPot(pay, e.Weights[k])
		}
	}
	p.Jackpot, p.Insurance = share(r.Jackpot, e.Credited), share(r.Insurance, e.Credited)
	return p, err
}

// Pot is what a share of an epoch pays, and what of it is left.
type Pot struct {
	Pay, Weight         uint64
	LeftPay, LeftWeight uint64
}

// NewPot returns a pot of which nobody has taken its part.
func NewPot(pay, weight uint64) Pot { return Pot{pay, weight, pay, weight} }

// Check returns an error if a pot cannot have come about.
func (p Pot) Check() error {
	if p.LeftPay > p.Pay || p.LeftWeight > p.Weight || p.LeftWeight == 0 && p.LeftPay > 0 {
		return fmt.Errorf("a pot of %d for %d has %d for %d left", p.Pay, p.Weight, p.LeftPay, p.LeftWeight)
	}
	return nil
}

// Take takes the part of who has a weight, rounded down; of an empty pot that is nothing. With the last part the
// pot gives out the rest, which rounding has left.
func (p *Pot) Take(weight uint64) (pay, rest uint64, err error) {
	if weight == 0 || p.Weight == 0 {
		return 0, 0, nil
	}
	if weight > p.LeftWeight {
		return 0, 0, fmt.Errorf("a weight of %d takes of a pot for which %d are left", weight, p.LeftWeight)
	}
	if pay, err = money.ScaleDown(p.Pay, weight, p.Weight); err != nil {
		return 0, 0, err
	}
	if pay > p.LeftPay {
		return 0, 0, fmt.Errorf("a part of %d utally of a pot that has %d left", pay, p.LeftPay)
	}
	p.LeftPay -= pay
	if p.LeftWeight -= weight; p.LeftWeight == 0 {
		rest, p.LeftPay = p.LeftPay, 0
	}
	return pay, rest, nil
}
