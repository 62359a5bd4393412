package money

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// Each function gives what whole numbers without a bound give, or says that it does not fit.
func TestAmountsAreExactOrRefused(t *testing.T) {
	most := new(big.Int).SetUint64(math.MaxUint64)
	same := func(t *rapid.T, want *big.Int, got uint64, err error) {
		if want.Cmp(most) > 0 {
			if !errors.Is(err, ErrOverflow) {
				t.Fatalf("%v does not fit, got %d, %v", want, got, err)
			}
		} else if err != nil || want.Cmp(new(big.Int).SetUint64(got)) != 0 {
			t.Fatalf("got %d, %v, want %v", got, err, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.OneOf(rapid.Uint64Range(0, 20), rapid.Uint64())
		a, b, c := amount.Draw(t, "a"), amount.Draw(t, "b"), max(amount.Draw(t, "c"), 1)
		x, y, z := new(big.Int).SetUint64(a), new(big.Int).SetUint64(b), new(big.Int).SetUint64(c)

		got, err := Sum(a, b, c)
		same(t, new(big.Int).Add(x, new(big.Int).Add(y, z)), got, err)

		n := int(b >> 1)
		got, err = Times(a, n)
		same(t, new(big.Int).Mul(x, big.NewInt(int64(n))), got, err)

		up := new(big.Int).Mul(x, y)
		up.Add(up, new(big.Int).Sub(z, big.NewInt(1)))
		got, err = Scale(a, b, c)
		same(t, up.Div(up, z), got, err)

		down := new(big.Int).Mul(x, y)
		got, err = ScaleDown(a, b, c)
		same(t, down.Div(down, z), got, err)

		clamped := new(big.Int).SetUint64(ScaleClamped(a, b, c))
		if down.Cmp(most) > 0 {
			down = most
		}
		if clamped.Cmp(down) != 0 || ScaleClamped(a, b, 0) != math.MaxUint64 {
			t.Fatalf("clamped: %v, want %v", clamped, down)
		}
	})
}
