// Package coin is the chain's one currency.
//
// Ledgers count in utally, as uint64; only the bank uses the SDK's big integers. One tally
// is 10⁶ utally. [Of] makes the bank's coins of an amount, and [Amount] reads them.
//
// Invariant: the supply never exceeds [MaxSupply], so any sum of two amounts that exist fits
// in a uint64.
package coin

import (
	sdkmath "cosmossdk.io/math"

	sdk "github.com/cosmos/cosmos-sdk/types"
)

const (
	Denom    = "utally" // the unit of every amount on the chain
	Display  = "tally"  // the unit that people read
	Exponent = 6        // 1 tally = 10^Exponent utally

	// MaxSupply bounds the tokens at genesis; nothing mints afterwards.
	MaxSupply uint64 = 1 << 62
)

// Of returns amount utally as the bank counts them. Zero gives no coins.
func Of(amount uint64) sdk.Coins {
	return sdk.NewCoins(sdk.NewCoin(Denom, sdkmath.NewIntFromUint64(amount)))
}

// Amount returns the utally among coins.
func Amount(coins sdk.Coins) uint64 { return coins.AmountOf(Denom).Uint64() }
