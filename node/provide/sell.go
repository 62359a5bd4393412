package provide

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/match"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/events"
	"github.com/tally-network/tally/node/leases"
)

// Pauses are protocol time, in ms, between two looks at what is on sale.
const (
	sellPause    = 10_000
	handPause    = 1_000 // if the settings sell nothing: what a person put on sale may be sold, and must then be taken on within seconds
	maxDoublings = 10    // of sellPause, one for each refusal, since that costs a fee: up to some hours
	maxSales     = 1024  // that we look at
)

// sell keeps on sale at auctions what the settings say. If they say nothing, it leaves alone what was put on sale by hand; so
// it does with each tier that was changed by hand while it runs. Capacity that was sold is on sale again once no lease of an
// auction is under way. So a machine never owes more than once what it offers.
func (p *provider) sell(ctx context.Context, b client.Block, live []leases.Lease) {
	busy := slices.ContainsFunc(live, func(l leases.Lease) bool {
		return l.Order.Conditions.Auction && l.Phase == job.Active && slices.ContainsFunc(l.Providers, func(x job.Party) bool { return x.Account == p.env.Account.Address })
	})
	if p.selling.Load() || p.bound.Load() {
		p.sends.Start(ctx, "take on orders", func(ctx context.Context) error { return p.takeOn(ctx, b.Time) })
	}
	busy = busy || p.bound.Load()
	if p.sealedRules.Load() != nil {
		p.sends.Start(ctx, "bid at auctions", func(ctx context.Context) error { return p.bid(ctx, b.Time, busy) })
	}
	nothingSet := len(p.lots) == 0
	if b.Time < p.sellAt || busy && !nothingSet {
		return
	}
	if p.sellAt = b.Time + sellPause<<min(p.refused.Load(), maxDoublings); nothingSet {
		p.sellAt = b.Time + handPause
	}
	p.sends.Start(ctx, "sell capacity", p.restock)
}

// restock offers the lots of the settings, unless the chain has them on sale, or a person has said otherwise while this runs.
func (p *provider) restock(ctx context.Context) error {
	me, q := p.env.Account.Address, auctionv1.NewQueryClient(p.env.Chain.Conn)
	lots, err := p.forSale(ctx, q)
	if err != nil {
		return err
	}
	r, err := q.Capacity(ctx, &auctionv1.QueryCapacityRequest{Provider: me})
	if err != nil {
		return fmt.Errorf("ask what is on sale: %w", err)
	}
	if len(p.lots) == 0 { // what its account has put on sale by hand stays so
		if on := len(r.Capacity.Lots) > 0; p.selling.Swap(on) != on && on {
			p.env.Emit(events.Event{Kind: events.Sells, Unit: -1, Text: "on sale at auctions, as its account has said: " + wire.LotsText(r.Capacity.Lots) + "; tally tx auction withdraw-capacity takes it off"})
		}
		return nil
	}
	if err := p.warnShort(ctx); err != nil {
		return err
	}
	lots, changed := p.hand.look(r.Capacity.Lots, r.Said, lots)
	if len(changed) > 0 {
		p.env.Emit(events.Event{Kind: events.Sells, Unit: -1, Text: fmt.Sprintf("tier %s as its account has said by hand, until this role is started anew; on sale now: %s", strings.Join(changed, ", "), wire.LotsText(r.Capacity.Lots))})
	}
	fit, err := p.sellable(ctx, lots)
	if err != nil {
		return err
	}
	on := r.Capacity.Lots
	p.selling.Store(len(on) > 0 || len(fit) > 0)
	if r.Stands || !worthSaying(on, lots, fit) && (r.Capacity.Ends == 0 || p.hand.any()) {
		return nil
	}
	m := &auctionv1.MsgSell{Provider: me, Lots: fit}
	if p.hand.any() {
		m.Ends = r.Capacity.Ends
	}
	err = p.env.Send(ctx, m)
	p.hand.sent(err)
	if err != nil {
		p.refused.Add(1)
		return fmt.Errorf("offer capacity at auctions: %w", err)
	}
	p.refused.Store(0)
	text := wire.LotsText(slices.DeleteFunc(slices.Clone(*p.fit.Load()), func(l auctionv1.Lot) bool { return p.hand.leftAlone(l.Tier) }))
	if rules := p.sealedRules.Load(); rules != nil {
		text += fmt.Sprintf(", whose price is secret. Each ask locks %d utally beside the stake until it is revealed", rules.Deposit)
	}
	p.env.Emit(events.Event{Kind: events.Sells, Unit: -1, Text: "capacity at auctions: " + text})
	return nil
}

// worthSaying reports whether what is on sale lacks a lot that may be sold, or has one that nobody wants to sell. A lot that is
// on sale and may no longer be stays there: a measured speed moves a little all the time, and each word costs a fee.
func worthSaying(on, wanted, fit []auctionv1.Lot) bool {
	return !within(fit, on) || !within(on, wanted)
}

// within reports whether all of some lots are among others.
func within(lots, others []auctionv1.Lot) bool {
	return !slices.ContainsFunc(lots, func(l auctionv1.Lot) bool { return !slices.Contains(others, l) })
}

// maxTaken is how many orders a transaction takes on.
const maxTaken = 16

// takeOn says on chain that we are there for the orders that clearings have sold our capacity to. If it is late, a bond is
// lost.
func (p *provider) takeOn(ctx context.Context, now int64) error {
	me, q := p.env.Account.Address, auctionv1.NewQueryClient(p.env.Chain.Conn)
	all, err := client.Pages("orders that we sold to", maxSales, func(page *query.PageRequest) ([]auctionv1.SoldTo, *query.PageResponse, error) {
		r, err := q.Sales(ctx, &auctionv1.QuerySalesRequest{Provider: me, Pagination: page})
		if err != nil {
			return nil, nil, err
		}
		return r.Sales, r.Pagination, nil
	})
	if err != nil {
		return err
	}
	p.bound.Store(len(all) > 0)
	var msgs []sdk.Msg
	for _, s := range all {
		if !s.Part.Taken && s.Until > now && len(msgs) < maxTaken {
			msgs = append(msgs, &auctionv1.MsgTakeOn{Provider: me, Clearing: s.Clearing, Order: s.Order})
		}
	}
	if len(msgs) == 0 {
		return nil
	}
	if err := p.env.Send(ctx, msgs...); err != nil {
		return fmt.Errorf("take on orders that we sold capacity to: %w", err)
	}
	p.env.Emit(events.Event{Kind: events.Sells, Unit: -1, Text: fmt.Sprintf("capacity to %d orders, and takes them on", len(msgs))})
	return nil
}

// forSale returns the lots of the settings as they are put on sale: where bids are sealed, their prices are told to nobody.
func (p *provider) forSale(ctx context.Context, q auctionv1.QueryClient) ([]auctionv1.Lot, error) {
	if len(p.lots) == 0 {
		p.sealedRules.Store(nil)
		return nil, nil
	}
	r, err := q.Params(ctx, &auctionv1.QueryParamsRequest{})
	if err != nil {
		return nil, fmt.Errorf("ask for the rules of auctions: %w", err)
	}
	if !wire.SealedBids(&r.Params) {
		p.sealedRules.Store(nil)
		return p.lots, nil
	}
	p.sealedRules.Store(&r.Params)
	lots := slices.Clone(p.lots)
	for i := range lots {
		lots[i].Ask = 0
	}
	return lots, nil
}

// sellable returns the lots that the chain would take, those of a person first, and tells of others.
func (p *provider) sellable(ctx context.Context, all []auctionv1.Lot) ([]auctionv1.Lot, error) {
	q := providerv1.NewQueryClient(p.env.Chain.Conn)
	at, err := q.Peer(ctx, &providerv1.QueryPeerRequest{Account: p.env.Account.Address})
	if err != nil {
		return nil, fmt.Errorf("ask how fast we were measured: %w", err)
	}
	r, err := q.Params(ctx, &providerv1.QueryParamsRequest{})
	if err != nil {
		return nil, fmt.Errorf("ask which tiers there are: %w", err)
	}
	first := slices.Clone(all)
	slices.SortStableFunc(first, func(x, y auctionv1.Lot) int {
		switch a, b := p.hand.leftAlone(x.Tier), p.hand.leftAlone(y.Tier); {
		case a && !b:
			return -1
		case b && !a:
			return 1
		}
		return 0
	})
	lots, refused := sift(first, at.Speed, wire.TiersFromProto(r.Params.Tiers))
	slices.SortFunc(lots, func(x, y auctionv1.Lot) int { return cmp.Compare(x.Tier, y.Tier) })
	fit := slices.DeleteFunc(slices.Clone(p.lots), func(l auctionv1.Lot) bool {
		return !slices.ContainsFunc(lots, func(x auctionv1.Lot) bool { return x.Tier == l.Tier })
	})
	p.fit.Store(&fit)
	var texts []string
	for _, err := range refused {
		texts = append(texts, err.Error())
	}
	sold := wire.LotsText(lots)
	if last := p.sold.Swap(&sold); len(texts) > 0 && (last == nil || *last != sold) { // the texts tell a speed, which moves
		p.env.Emit(events.Event{Kind: events.Sells, Unit: -1, Text: fmt.Sprintf("%s. Not on sale: %s", sold, strings.Join(texts, "; "))})
	}
	return lots, nil
}

// sift returns the lots that a provider may have on sale which was measured at so many FLOP/s, and why others may not be.
func sift(all []auctionv1.Lot, speed uint64, tiers match.Tiers) (lots []auctionv1.Lot, refused []error) {
	others := uint64(0)
	for _, l := range all {
		if err := wire.CheckLot(l, others, speed, tiers); err != nil {
			refused = append(refused, err)
			continue
		}
		lots, others = append(lots, l), others+l.Units
	}
	return lots, refused
}
