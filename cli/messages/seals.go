package messages

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/cosmos/gogoproto/proto"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/auction"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	blockv1 "github.com/tally-network/tally/gen/tally/block/v1"
	"github.com/tally-network/tally/node/seals"
)

// Of sealed bids the sender's home keeps what opens them.
var (
	sealAsk = Message{"seal-ask TIER PRICE", "Sell a lot in the next clearing at a secret price of a unit or more, in utally; tally provide --sell does it by itself",
		"tally tx auction sell C:1000000@0 -y # on sale by sealed bids alone\ntally tx auction seal-ask C 800 --home ~/.tally -y\ntally tx auction reveal-ask --home ~/.tally -y # waits until nobody can bid any more",
		func(ctx context.Context, by Sender, args []string) (proto.Message, error) {
			return seal(ctx, by, "", args[0], args[1])
		}}
	sealBid = Message{"seal-bid ORDER PRICE", "Bid for an order in the next clearing a secret price of a unit at most, in utally; tally batch does it by itself",
		"tally tx auction seal-bid 3f09… 1200 --home ~/.tally -y\ntally tx auction reveal-bid 3f09… --home ~/.tally -y # waits until nobody can bid any more",
		func(ctx context.Context, by Sender, args []string) (proto.Message, error) {
			return seal(ctx, by, args[0], "", args[1])
		}}
	revealAsk = Message{"reveal-ask", "Reveal the ask that the home has sealed, and get the deposit back", "tally tx auction reveal-ask --home ~/.tally -y",
		func(ctx context.Context, by Sender, _ []string) (proto.Message, error) { return reveal(ctx, by, "") }}
	revealBid = Message{"reveal-bid ORDER", "Reveal the bid for an order that the home has sealed, and get the deposit back", "tally tx auction reveal-bid 3f09… --home ~/.tally -y",
		func(ctx context.Context, by Sender, args []string) (proto.Message, error) {
			return reveal(ctx, by, args[0])
		}}
)

// pause is between two looks at a clearing: its bids are taken for seconds.
const pause = 200 * time.Millisecond

// await waits until a clearing takes sealed bids, or takes reveals of one, and returns it with the sender's bid for an order, or its ask.
// ready says whether it does, or why it never will.
func await(ctx context.Context, by Sender, order string, ready func(r *auctionv1.QuerySealResponse, now int64) (bool, error)) (*auctionv1.QuerySealResponse, error) {
	for told := false; ; told = true {
		r, err := auctionv1.NewQueryClient(by).Seal(ctx, &auctionv1.QuerySealRequest{Bidder: by.Account, Order: order})
		if err != nil {
			return nil, err
		}
		at, err := blockv1.NewQueryClient(by).Now(ctx, &blockv1.QueryNowRequest{})
		if err != nil {
			return nil, err
		}
		if ok, err := ready(r, at.TimeMs); ok || err != nil {
			return r, err
		}
		if !told {
			fmt.Fprintln(os.Stderr, "waiting for the clearing; Ctrl-C sends nothing")
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

func seal(ctx context.Context, by Sender, order, tier, text string) (proto.Message, error) {
	price, err := strconv.ParseUint(text, 10, 64)
	if err != nil || price < 1 || price > auction.MaxAsk {
		return nil, fmt.Errorf("price %q: want a number of utally for 10⁹ operations, from 1 to %d", text, uint64(auction.MaxAsk))
	}
	p, err := auctionv1.NewQueryClient(by).Params(ctx, &auctionv1.QueryParamsRequest{})
	if err != nil {
		return nil, err
	}
	if !wire.SealedBids(&p.Params) {
		return nil, fmt.Errorf("bids by rule %s are open: what an order locks and what is on sale are the bids", p.Params.Rule)
	}
	r, err := await(ctx, by, order, func(r *auctionv1.QuerySealResponse, now int64) (bool, error) {
		if r.Seal != nil {
			return false, fmt.Errorf("a bid is sealed already in clearing %d, and stands: reveal it by tally tx auction reveal-ask, or reveal-bid ORDER", r.Progress.Number)
		}
		return r.Progress != nil && r.Progress.RevealsUntil != 0 && !r.Waits && now < r.Progress.ClosesAt, nil
	})
	if err != nil {
		return nil, err
	}
	return seals.In(by.HomeDir).Seal(by.ChainID, by.Account, r.Progress.Number, order, tier, price)
}

func reveal(ctx context.Context, by Sender, order string) (proto.Message, error) {
	r, err := await(ctx, by, order, func(r *auctionv1.QuerySealResponse, now int64) (bool, error) {
		switch {
		case r.Seal == nil:
			return false, fmt.Errorf("%s has sealed no such bid in the clearing under way: tally query auction seals lists those that are sealed", by.Account)
		case r.Seal.Price != 0:
			return false, fmt.Errorf("the bid is revealed already: clearing %d waits for others", r.Progress.Number)
		}
		return now >= r.Progress.ClosesAt, nil
	})
	if err != nil {
		return nil, err
	}
	return seals.In(by.HomeDir).Open(r.Progress.Number, r.Seal)
}
