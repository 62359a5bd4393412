package cli

import (
	"fmt"
	"math"
	"math/big"
	"strings"

	"github.com/tally-network/tally/chain/coin"
)

// parseAmount reads an amount of money in utally: "5tally", "2.5tally",
// "700utally", or a bare number of utally.
func parseAmount(text string) (uint64, error) {
	bad := fmt.Errorf("amount %.40q: write 100tally, 2.5tally or 700utally", text)
	number, scale := strings.TrimSuffix(text, coin.Denom), int64(1)
	if n, ok := strings.CutSuffix(number, coin.Display); ok && number == text {
		number = n
		for range coin.Exponent {
			scale *= 10
		}
	}
	number = strings.TrimSpace(number)
	if number == "" || strings.Trim(number, "0123456789.") != "" || len(number) > 40 {
		return 0, bad
	}
	r, ok := new(big.Rat).SetString(number)
	if !ok {
		return 0, bad
	}
	r.Mul(r, new(big.Rat).SetInt64(scale))
	if !r.IsInt() {
		return 0, fmt.Errorf("amount %q is finer than one utally", text)
	}
	if !r.Num().IsUint64() || r.Num().Uint64() > min(coin.MaxSupply, math.MaxInt64) {
		return 0, fmt.Errorf("amount %q is more money than there can be", text)
	}
	return r.Num().Uint64(), nil
}

// writeAmount writes utally as people read them.
func writeAmount(utally uint64) string {
	text := fmt.Sprintf("%d.%06d", utally/1_000_000, utally%1_000_000)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") + " " + coin.Display
}

// amount is a flag that takes money.
type amount uint64

func (a *amount) String() string { return fmt.Sprintf("%d%s", uint64(*a), coin.Denom) }
func (a *amount) Type() string   { return "amount" }
func (a *amount) Set(text string) error {
	n, err := parseAmount(text)
	*a = amount(n)
	return err
}
