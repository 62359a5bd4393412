package auction

import (
	"context"
	"fmt"
	"time"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/auction"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
)

// Times of the default rules.
const (
	DefaultPeriod = 30 * time.Second
	DefaultWindow = 10 * time.Second
	DefaultReveal = 10 * time.Second
	DefaultAnswer = 20 * time.Second
)

// DefaultParams clear every half minute, and take certificates for ten seconds of it.
func DefaultParams() auctionv1.Params {
	return auctionv1.Params{
		PeriodMs: DefaultPeriod.Milliseconds(), WindowMs: DefaultWindow.Milliseconds(), Rule: auction.Midpoint.String(), AgeStep: 1_000, AgeMost: 10,
		MaxDemands: 512, MaxLots: 512, FeeBps: 1_000, Balance: 4, DoubtBps: 1_000,
		RevealMs: DefaultReveal.Milliseconds(), Deposit: 1_000_000, LotUnits: 1_000_000, Epsilon: 1_000, GridLeast: 50, GridStep: 50, GridCount: 1_024,
		AnswerMs: DefaultAnswer.Milliseconds(), AbsentBps: 1_000,
	}
}

// Bounds of the rules. What a block does for a clearing follows from them.
const (
	maxPeriod   = 7 * 24 * 3600 * 1000 // ms
	maxDemands  = 1024
	maxLots     = 1024 // of each tier
	maxCritical = 256  // demands: each winner's price takes as many steps as there are
	maxBalance  = 1 << 10
	maxDoubt    = 10_000
	minDeposit  = 10_000      // utally: what is not revealed takes a place
	maxDeposit  = 100_000_000 // utally
)

// CheckParams returns an error that shows, with its numbers, what is wrong with the rules of auctions.
func CheckParams(p auctionv1.Params) error {
	rules, err := wire.ClearingRules(&p)
	switch {
	case err != nil:
		return err
	case p.PeriodMs < 1 || p.PeriodMs > maxPeriod || p.WindowMs < 1 || p.WindowMs > p.PeriodMs:
		return fmt.Errorf("a clearing every %d ms with certificates for %d ms: want 1 ≤ window_ms ≤ period_ms ≤ %d", p.PeriodMs, p.WindowMs, int64(maxPeriod))
	case p.MaxDemands < 1 || p.MaxDemands > maxDemands || p.MaxLots < 1 || p.MaxLots > maxLots:
		return fmt.Errorf("a clearing of %d orders and %d lots of a tier: want 1 to %d and 1 to %d, for a block has to clear them", p.MaxDemands, p.MaxLots, maxDemands, maxLots)
	case rules.Rule == auction.Critical && p.MaxDemands > maxCritical:
		return fmt.Errorf("max_demands = %d: rule critical prices at most %d orders in a block", p.MaxDemands, maxCritical)
	case p.FeeBps > wire.MaxFeeBps:
		return fmt.Errorf("fee_bps = %d, at most %d", p.FeeBps, wire.MaxFeeBps)
	case p.Balance > maxBalance:
		return fmt.Errorf("balance = %d operations for a byte, at most %d", p.Balance, maxBalance)
	case p.AnswerMs < 1 || p.AnswerMs > maxPeriod || p.AbsentBps < 1 || p.AbsentBps > bps:
		return fmt.Errorf("who sells has %d ms to take an order on, or loses %d bps of its pay: want 1 to %d, and 1 to %d", p.AnswerMs, p.AbsentBps, int64(maxPeriod), bps)
	case p.DoubtBps > maxDoubt:
		return fmt.Errorf("doubt_bps = %d, at most %d", p.DoubtBps, maxDoubt)
	}
	return checkSealed(p)
}

// checkSealed checks the rules of sealed bids. They are right even while bids are open: so a vote needs to set one rule alone.
func checkSealed(p auctionv1.Params) error {
	p.Rule = auction.Exponential.String()
	if _, err := wire.ClearingRules(&p); err != nil {
		return err
	}
	switch {
	case p.RevealMs < 1 || p.RevealMs > p.PeriodMs:
		return fmt.Errorf("sealed bids are revealed for %d ms: want 1 ≤ reveal_ms ≤ period_ms = %d", p.RevealMs, p.PeriodMs)
	case p.Deposit < minDeposit || p.Deposit > maxDeposit:
		return fmt.Errorf("deposit = %d utally, want %d to %d", p.Deposit, minDeposit, maxDeposit)
	case p.LotUnits < 1 || p.LotUnits > auction.MaxUnits:
		return fmt.Errorf("lot_units = %d, want 1 to %d", p.LotUnits, uint64(auction.MaxUnits))
	case p.GridLeast < 1 || p.GridLeast > auction.MaxAsk || p.GridStep < 1 || p.GridStep > auction.MaxAsk:
		return fmt.Errorf("prices from %d by %d utally: want both from 1 to %d", p.GridLeast, p.GridStep, uint64(auction.MaxAsk))
	}
	return nil
}

type msgServer struct {
	*Keeper
	market Market
}

// UpdateParams replaces the rules of auctions. A clearing under way ends by those with which it began.
func (s msgServer) UpdateParams(ctx context.Context, m *auctionv1.MsgUpdateParams) (*auctionv1.MsgUpdateParamsResponse, error) {
	if err := s.rules.Replace(ctx, m.Authority, m.Params); err != nil {
		return nil, err
	}
	return &auctionv1.MsgUpdateParamsResponse{}, module.Emit(ctx, &auctionv1.EventParams{Params: m.Params})
}
