// Package sortition turns weights into seats, by lot or by share, so that splitting a weight over many names gains
// nothing. It also bounds how far a validator set may change at once.
//
// Begin with a [Lottery]: [Lottery.Won] draws the seats that a weight wins, and [Lottery.Share] gives its seats without
// chance. A [Ranking] keeps the members with the most. [Step] returns the next set on the way to a target.
//
// Invariants: what is won by a weight is distributed as what its parts win together. A share never exceeds the part of
// the weight, and parts never have more than the whole. Between a set and the next [Step] there is always [Within].
// All results are integers, and the same on every machine.
//
// Sources: Algorand's sortition (Gilad et al., SOSP 2017) for seats by binomial quantiles; CometBFT's light client
// for how far sets may be apart.
package sortition

import (
	"fmt"
	"math/big"
	"math/bits"

	"github.com/tally-network/tally/core/beacon"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/money"
)

// MaxSeats bounds the seats of a Lottery.
const MaxSeats = 1 << 16

// precision is how many bits odds have after the binary point.
const precision = 8 * canon.HashSize

// meanOfChunk is how many seats are drawn at once, on the mean. The odds of none are then at least 2⁻¹²⁸, so that
// half of the bits are left for them.
const meanOfChunk = 64

// Lottery is how many seats there are for a weight in all. Each unit of weight wins one with the same chance.
type Lottery struct{ Seats, Weight uint64 }

// Check returns an error unless a lottery can be held. Nobody has a seat in one that cannot.
func (l Lottery) Check() error {
	if l.Seats < 1 || l.Seats > MaxSeats {
		return fmt.Errorf("%d seats: want 1 to %d", l.Seats, MaxSeats)
	}
	if l.Weight/2 < l.Seats {
		return fmt.Errorf("%d seats for a weight of %d: want two units for each seat, or more; take smaller units", l.Seats, l.Weight)
	}
	return nil
}

// Share returns the seats that a weight has without chance: ⌊Seats · weight / Weight⌋.
func (l Lottery) Share(weight uint64) uint64 {
	if l.Check() != nil {
		return 0
	}
	return money.ScaleClamped(l.Seats, min(weight, l.Weight), l.Weight)
}

// Won returns how many units of a weight win a seat, by lots of its owner alone: Binomial(weight, Seats / Weight).
// The weight is cut into chunks of which each has a fraction of its own.
func (l Lottery) Won(weight uint64, lots beacon.Lots) (seats uint64) {
	if l.Check() != nil {
		return 0
	}
	var c chunk
	left, most := min(weight, l.Weight), money.ScaleClamped(meanOfChunk, l.Weight, l.Seats)
	for at := uint64(0); left > 0; at++ {
		if n := min(left, most); n != c.units {
			c.begin(l, n)
		}
		seats += c.won(lots.Fraction(at))
		left -= c.units
	}
	return seats
}

// chunk is a number of units that are drawn for together. Its numbers are used again for the next one.
type chunk struct {
	units       uint64
	none        big.Int // odds that no unit wins, in 2⁻²⁵⁶
	win, lose   big.Int // odds of a unit: win to lose
	odds, left  big.Int
	word, twice big.Int
	rest        big.Int // of a division, so that it needs no memory
}

// begin computes the odds that none of n units wins: those of one unit to the nth power. Bits of n are taken from the
// highest on, and every product is cut off after 256 bits.
func (c *chunk) begin(l Lottery, n uint64) {
	c.units = n
	c.win.SetUint64(l.Seats)
	c.lose.SetUint64(l.Weight - l.Seats)
	one := &c.odds
	one.Quo(one.Lsh(&c.lose, precision), c.word.SetUint64(l.Weight))
	c.none.Set(one)
	for bit := bits.Len64(n) - 2; bit >= 0; bit-- {
		c.none.Rsh(c.twice.Mul(&c.none, &c.none), precision)
		if n>>bit&1 == 1 {
			c.none.Rsh(c.twice.Mul(&c.none, one), precision)
		}
	}
}

// won returns the least j such that the odds of 0 to j seats add up to more than a fraction. Odds are cut off: they may
// add up to less than one. Beyond the last j that has any, the walk ends.
func (c *chunk) won(fraction canon.Hash) (j uint64) {
	c.left.SetBytes(fraction[:])
	c.odds.Set(&c.none)
	for c.left.Sub(&c.left, &c.odds).Sign() >= 0 && j < c.units && c.odds.Sign() > 0 {
		c.odds.Mul(&c.odds, c.word.SetUint64(c.units-j))
		c.odds.Mul(&c.odds, &c.win)
		c.odds.QuoRem(&c.odds, &c.lose, &c.rest) // as ⌊⌊x/a⌋/b⌋ is ⌊x/ab⌋
		j++
		c.odds.QuoRem(&c.odds, c.word.SetUint64(j), &c.rest)
	}
	return j
}
