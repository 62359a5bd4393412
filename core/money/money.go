// Package money computes with amounts in utally, whole numbers below 2⁶⁴. Begin with [Scale], which
// takes a share of an amount.
//
// Invariants: a result is exact, or rounded up, so that what is owed is never short; [ScaleDown], [ScaleClamped] and [Part] alone
// round down. What does not fit is [ErrOverflow], never a smaller amount; [ScaleClamped] alone, which is for no payment, has
// no error.
//
// Source: docs/spec/lease.md, Money.
package money

import (
	"errors"
	"math"
	"math/bits"
)

// ErrOverflow is returned for amounts that do not fit 64 bits.
var ErrOverflow = errors.New("amount is too large")

// Scale returns ⌈a·b/c⌉ without intermediate overflow.
func Scale(a, b, c uint64) (uint64, error) {
	hi, lo := bits.Mul64(a, b)
	lo, carry := bits.Add64(lo, c-1, 0)
	hi += carry
	if hi >= c {
		return 0, ErrOverflow
	}
	q, _ := bits.Div64(hi, lo, c)
	return q, nil
}

// ScaleDown returns ⌊a·b/c⌋ without intermediate overflow.
func ScaleDown(a, b, c uint64) (uint64, error) {
	hi, lo := bits.Mul64(a, b)
	if hi >= c {
		return 0, ErrOverflow
	}
	q, _ := bits.Div64(hi, lo, c)
	return q, nil
}

// ScaleClamped returns ⌊a·b/c⌋, or the largest number if that is above it or c is 0. It is for bounds and estimates, where
// all that is so large means the same; nobody is paid by it.
func ScaleClamped(a, b, c uint64) uint64 {
	q, err := ScaleDown(a, b, c)
	if err != nil {
		return math.MaxUint64
	}
	return q
}

// Bps is how many basis points a whole has.
const Bps = 10_000

// Part returns ⌊x·bps/10⁴⌋ without intermediate overflow, for bps of at most 10⁴.
func Part(x uint64, bps uint32) uint64 { return x/Bps*uint64(bps) + x%Bps*uint64(bps)/Bps }

// Sum adds amounts.
func Sum(xs ...uint64) (uint64, error) {
	var total, carry uint64
	for _, x := range xs {
		if total, carry = bits.Add64(total, x, 0); carry != 0 {
			return 0, ErrOverflow
		}
	}
	return total, nil
}

// Times multiplies an amount by a count.
func Times(x uint64, n int) (uint64, error) {
	hi, lo := bits.Mul64(x, uint64(n))
	if hi != 0 {
		return 0, ErrOverflow
	}
	return lo, nil
}
