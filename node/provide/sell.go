package provide

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/job"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/events"
	"github.com/tally-network/tally/node/leases"
)

// sellPause is the protocol time, in ms, between two looks at what is on sale. A refusal costs a fee, so each doubles
// it, up to some hours.
const (
	sellPause    = 10_000
	maxDoublings = 10
)

// sell keeps on sale at auctions what the settings say. Capacity that was sold is on sale again once no lease of an auction is
// under way: so a machine never owes more than once what it offers.
func (p *provider) sell(ctx context.Context, b client.Block, live []leases.Lease) {
	busy := slices.ContainsFunc(live, func(l leases.Lease) bool {
		return l.Order.Conditions.Auction && l.Phase == job.Active && slices.ContainsFunc(l.Providers, func(x job.Party) bool { return x.Account == p.env.Account.Address })
	})
	if p.unsold.Load() || busy || b.Time < p.sellAt {
		return
	}
	p.sellAt = b.Time + sellPause<<min(p.refused.Load(), maxDoublings)
	p.sends.Start(ctx, "sell capacity", p.restock)
}

// restock offers the lots of the settings, unless the chain has them on sale.
func (p *provider) restock(ctx context.Context) error {
	me := p.env.Account.Address
	r, err := auctionv1.NewQueryClient(p.env.Chain.Conn).Capacity(ctx, &auctionv1.QueryCapacityRequest{Provider: me})
	if err != nil {
		return fmt.Errorf("ask what is on sale: %w", err)
	}
	if as := slices.Equal(r.Capacity.Lots, p.lots) && r.Capacity.Ends == 0; as || r.Stands {
		p.unsold.Store(as && len(p.lots) == 0)
		return nil
	}
	if err := p.env.Send(ctx, &auctionv1.MsgSell{Provider: me, Lots: p.lots}); err != nil {
		p.refused.Add(1)
		return fmt.Errorf("offer capacity at auctions: %w", err)
	}
	p.refused.Store(0)
	if len(p.lots) == 0 {
		return nil
	}
	var texts []string
	for _, l := range p.lots {
		texts = append(texts, wire.LotText(l))
	}
	p.env.Emit(events.Event{Kind: events.Sells, Unit: -1, Text: "capacity at auctions: " + strings.Join(texts, ", ")})
	return nil
}
