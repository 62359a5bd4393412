package match

import (
	"math"

	"github.com/tally-network/tally/core/money"
)

// whole is what a lapse is a part of. It is so fine that a small lease gives something back to who has much at stake.
const whole = 1_000_000_000

// mostLapsed is what a lead can lose at most: with nothing left it could never show that it is better now.
const mostLapsed = whole - whole/16

// Lapse is the part, in 1/10⁹, of what a validator may lead that it has lost by failing as a lead. The zero
// value has never failed.
type Lapse uint32

// Fail takes half of what is left.
func (x Lapse) Fail() Lapse { return min(x+(whole-min(x, whole))/2, mostLapsed) }

// Mend gives back what leading to the end earns: all of it for work worth the stake, both in utally.
func (x Lapse) Mend(paid, stake uint64) Lapse {
	return x - Lapse(min(uint64(x), money.ScaleClamped(whole, paid, max(stake, 1))))
}

// Capacity returns the price of all that a validator may lead at a time, in utally: so many times its stake, less
// what it has lost. A factor of 0 sets no bound.
func (x Lapse) Capacity(stake, factor uint64) uint64 {
	if factor == 0 {
		return math.MaxUint64
	}
	return money.ScaleClamped(money.ScaleClamped(stake, factor, 1), whole-min(uint64(x), whole), whole)
}
