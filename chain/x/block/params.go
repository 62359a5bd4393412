package block

import (
	"context"
	"fmt"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	blockv1 "github.com/tally-network/tally/gen/tally/block/v1"
)

// CheckParams returns an error that shows what is wrong with the rules of blocks.
func CheckParams(p blockv1.Params) error {
	switch {
	case p.GasPrice == 0:
		return fmt.Errorf("anybody could fill all blocks for nothing: gas_price = 0")
	case p.GasPrice > coin.MaxSupply/coin.GasUnit:
		return fmt.Errorf("nobody could pay for a transaction: gas_price = %d", p.GasPrice)
	case p.MaxGapMs < minGap:
		return fmt.Errorf("an idle chain's clocks would stand still: max_gap_ms = %d < 1000", p.MaxGapMs)
	}
	return nil
}

// Bounds of what a vote may set.
const (
	maxGasPrice = 1_000_000 // utally for 10⁶ gas: a vote costs a tally, and can take it back
	minGap      = 1_000     // ms
	maxGap      = 3_600_000 // ms: a halt of days must not end what people had days for
)

// mayReplace returns an error unless rules may take the place of others.
func mayReplace(old, p blockv1.Params) error {
	if err := CheckParams(p); err != nil {
		return err
	}
	return module.Within(
		module.Bound{Name: "gas_price", Old: old.GasPrice, New: p.GasPrice, Least: 1, Most: maxGasPrice},
		module.Signed("max_gap_ms", old.MaxGapMs, p.MaxGapMs, minGap, maxGap))
}

type msgServer struct{ *Keeper }

// UpdateParams replaces the rules of blocks.
func (s msgServer) UpdateParams(ctx context.Context, m *blockv1.MsgUpdateParams) (*blockv1.MsgUpdateParamsResponse, error) {
	if err := s.rules.Replace(ctx, m.Authority, m.Params); err != nil {
		return nil, err
	}
	return &blockv1.MsgUpdateParamsResponse{},
		module.Emit(ctx, &blockv1.EventParams{Params: m.Params})
}
