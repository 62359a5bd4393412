package consume

import (
	"context"
	"fmt"
	"sync"

	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/seals"
	"github.com/tally-network/tally/node/tasks"
)

// bidders is for how many orders a home bids at a time.
const bidders = 4

// bidder bids for the orders of a home.
type bidder struct {
	env   *role.Env
	tasks *tasks.Set
	tried sync.Map // the last clearing in which it has tried to bid, by order
}

// block bids for each order that is noted.
func (b *bidder) block(ctx context.Context, at client.Block) error {
	wanted, err := b.env.Seals.Wanted()
	for order, price := range wanted {
		b.tasks.Start(ctx, order, func(ctx context.Context) error { return b.bid(ctx, order, price, at.Time) })
	}
	return err
}

// bid seals a bid for an order in the clearing under way, or reveals the one that was sealed.
func (b *bidder) bid(ctx context.Context, order string, price uint64, now int64) error {
	o, err := marketv1.NewQueryClient(b.env.Chain.Conn).Order(ctx, &marketv1.QueryOrderRequest{Order: order})
	if err != nil {
		return nil // it is still being posted
	}
	if o.Order.Posting.Status != marketv1.STATUS_OPEN {
		return b.env.Seals.Done(order)
	}
	me := b.env.Account.Address
	r, err := auctionv1.NewQueryClient(b.env.Chain.Conn).Seal(ctx, &auctionv1.QuerySealRequest{Bidder: me, Order: order})
	if err != nil {
		return err
	}
	switch seals.Due(r, now) {
	case seals.Reveal:
		m, err := b.env.Seals.Open(r.Progress.Number, r.Seal)
		if err != nil {
			return err
		}
		return b.env.Send(ctx, m)
	case seals.Seal:
		n := r.Progress.Number
		if last, _ := b.tried.Swap(order, n); last == n {
			return nil
		}
		m, err := b.env.Seals.Seal(b.env.Chain.ChainID, me, n, order, "", price)
		if err != nil {
			return err
		}
		if err := b.env.Send(ctx, m); err != nil {
			return fmt.Errorf("bid for order %.8s in clearing %d: %w", order, n, err)
		}
		return b.env.Seals.Clean(n)
	}
	return nil
}
