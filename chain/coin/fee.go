package coin

import "math/bits"

// GasUnit is the gas that a price of gas is for.
const GasUnit = 1_000_000

// Fee returns the utally that a transaction with a limit of gas pays at least, at
// a price for 10⁶ gas. It is rounded up.
func Fee(price, gas uint64) uint64 {
	hi, lo := bits.Mul64(price, gas)
	if hi >= GasUnit {
		return MaxSupply
	}
	q, r := bits.Div64(hi, lo, GasUnit)
	if r > 0 {
		q++
	}
	return q
}
