package provide

import (
	"context"
	"fmt"
	"slices"

	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/wire"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/events"
)

// warnShort says once if the account cannot deposit what a sealed ask takes. Else its owner would learn that from a clearing
// that it misses.
func (p *provider) warnShort(ctx context.Context) error {
	rules := p.sealedRules.Load()
	if rules == nil || p.warned.Load() {
		return nil
	}
	me := p.env.Account.Address
	r, err := banktypes.NewQueryClient(p.env.Chain.Conn).Balance(ctx, &banktypes.QueryBalanceRequest{Address: me, Denom: coin.Denom})
	if err != nil {
		return fmt.Errorf("ask for the balance of %s: %w", me, err)
	}
	p.warned.Store(true)
	if text := short(me, r.Balance.Amount.Uint64(), rules.Deposit+client.FirstFees); text != "" {
		p.env.Emit(events.Event{Kind: events.Sells, Unit: -1, Text: text})
	}
	return nil
}

// short says what an account lacks of what a sealed ask takes, and how it gets that.
func short(account string, have, need uint64) string {
	if have >= need {
		return ""
	}
	return fmt.Sprintf("nothing at auctions before %s has %d utally beside its stake, for the deposit of a sealed ask and for fees; it has %d: tally tx bank send FROM %s %dutally", account, need, have, account, need-have)
}

// warnSealed says what becomes of a sealed ask once this process has ended.
func (p *provider) warnSealed(ctx context.Context) {
	if p.sealedRules.Load() == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	r, err := p.bids.Query.Seal(ctx, &auctionv1.QuerySealRequest{Bidder: p.env.Account.Address})
	if err == nil && r.Seal != nil && r.Seal.Price == 0 {
		p.env.Emit(events.Event{Kind: events.Sells, Unit: -1, Text: fmt.Sprintf("by a sealed ask: %d utally are burnt unless it is revealed in the next seconds, by tally tx auction reveal-ask", r.Seal.Deposit)})
	}
}

// bid seals an ask in the clearing under way, or reveals the one that was sealed. Of several lots each has its turn.
func (p *provider) bid(ctx context.Context, now int64, busy bool) error {
	rules := p.sealedRules.Load()
	if rules == nil {
		return nil
	}
	var lot auctionv1.Lot
	n, err := p.bids.Step(ctx, "", now, func(n uint64) (string, uint64, error) {
		if busy {
			return "", 0, nil
		}
		ours := slices.DeleteFunc(slices.Clone(*p.fit.Load()), func(l auctionv1.Lot) bool { return p.hand.leftAlone(l.Tier) })
		if len(ours) == 0 {
			return "", 0, nil
		}
		able := slices.DeleteFunc(ours, func(l auctionv1.Lot) bool { return l.Units < rules.LotUnits })
		if len(able) == 0 {
			return "", 0, fmt.Errorf("clearing %d takes lots of %d GFLOP, and none on sale has as many: offer one with --sell TIER:%d@PRICE", n, rules.LotUnits, rules.LotUnits)
		}
		lot = able[n%uint64(len(able))]
		return lot.Tier, lot.Ask, nil
	})
	if err != nil {
		return fmt.Errorf("bid at an auction, where an ask takes a deposit of %d utally: %w", rules.Deposit, err)
	}
	if n > 0 {
		p.env.Emit(events.Event{Kind: events.Sells, Unit: -1, Text: fmt.Sprintf("capacity at clearing %d, by a sealed ask: %s", n, wire.LotsText([]auctionv1.Lot{lot}))})
	}
	return nil
}
