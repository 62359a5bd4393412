package block

import (
	"context"
	"fmt"
	"math/bits"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/coin"
	blockv1 "github.com/tally-network/tally/gen/tally/block/v1"
)

// GasUnit is the gas that Params.GasPrice is for.
const GasUnit = 1_000_000

// CheckParams returns an error that shows what is wrong with the rules of blocks.
func CheckParams(p blockv1.Params) error {
	switch {
	case p.GasPrice == 0:
		return fmt.Errorf("anybody could fill all blocks for nothing: gas_price = 0")
	case p.GasPrice > coin.MaxSupply/GasUnit:
		return fmt.Errorf("nobody could pay for a transaction: gas_price = %d", p.GasPrice)
	case p.MaxGapMs < time.Second.Milliseconds():
		return fmt.Errorf("an idle chain's clocks would stand still: max_gap_ms = %d < 1000", p.MaxGapMs)
	}
	return nil
}

// Fee returns the utally that a transaction with a limit of gas pays at least, at
// a price for 10⁶ gas. It is rounded up.
func Fee(price, gas uint64) uint64 {
	hi, lo := bits.Mul64(price, gas)
	if hi >= GasUnit {
		return coin.MaxSupply
	}
	q, r := bits.Div64(hi, lo, GasUnit)
	if r > 0 {
		q++
	}
	return q
}

type msgServer struct{ *Keeper }

// UpdateParams replaces the rules of blocks.
func (s msgServer) UpdateParams(ctx context.Context, m *blockv1.MsgUpdateParams) (*blockv1.MsgUpdateParamsResponse, error) {
	if err := s.rules.Replace(ctx, m.Authority, m.Params); err != nil {
		return nil, err
	}
	return &blockv1.MsgUpdateParamsResponse{},
		sdk.UnwrapSDKContext(ctx).EventManager().EmitTypedEvent(&blockv1.EventParams{Params: m.Params})
}
