package consume

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/seals"
	"github.com/tally-network/tally/node/tasks"
)

const (
	bidders = 4         // orders for which a home bids at a time
	posting = time.Hour // in which an order that is noted is posted, or never: its account may wait for a node that long
)

// bidder bids for the orders of a home.
type bidder struct {
	env   *role.Env
	tasks *tasks.Set
	seals seals.Bidder
}

func newBidder(env *role.Env) *bidder {
	return &bidder{env: env, tasks: env.NewTasks(bidders), seals: seals.Bidder{
		Dir: env.Seals, Chain: env.Chain.ChainID, Account: env.Account.Address, Query: auctionv1.NewQueryClient(env.Chain.Conn), Send: env.Send,
	}}
}

// block bids for each order that is noted.
func (b *bidder) block(ctx context.Context, at client.Block) error {
	wanted, err := b.env.Seals.Wanted()
	for order, wish := range wanted {
		b.tasks.Start(ctx, order, func(ctx context.Context) error { return b.bid(ctx, order, wish, at.Time) })
	}
	return err
}

// bid seals a bid for an order in the clearing under way, or reveals the one that was sealed, until the order waits no more.
func (b *bidder) bid(ctx context.Context, order string, wish seals.Wish, now int64) error {
	o, err := marketv1.NewQueryClient(b.env.Chain.Conn).Order(ctx, &marketv1.QueryOrderRequest{Order: order})
	switch {
	case status.Code(err) == codes.NotFound && time.Since(wish.Since) < posting:
		return nil
	case status.Code(err) == codes.NotFound:
		return b.env.Seals.Done(order)
	case err != nil:
		return err
	case o.Order.Posting.Status != marketv1.STATUS_OPEN:
		return b.env.Seals.Done(order)
	}
	if _, err := b.seals.Step(ctx, order, now, func(uint64) (string, uint64, error) { return "", wish.Price, nil }); err != nil {
		return fmt.Errorf("bid for order %.8s: %w", order, err)
	}
	return nil
}
