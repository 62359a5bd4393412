package block

import (
	"context"
	"fmt"
	"time"

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
	case p.MaxGapMs < time.Second.Milliseconds():
		return fmt.Errorf("an idle chain's clocks would stand still: max_gap_ms = %d < 1000", p.MaxGapMs)
	}
	return nil
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
