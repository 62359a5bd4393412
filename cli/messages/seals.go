package messages

import (
	"context"
	"fmt"
	"strconv"

	"github.com/cosmos/gogoproto/proto"

	"github.com/tally-network/tally/core/auction"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	"github.com/tally-network/tally/node/seals"
)

// Of sealed bids the sender's home keeps what opens them.
var (
	sealAsk = Message{"seal-ask TIER PRICE", "Sell a lot in the clearing under way at a secret price of a unit or more, in utally; tally provide --sell does it by itself",
		"tally tx auction sell C:1000000@0 -y # on sale by sealed bids alone\ntally tx auction seal-ask C 800 --home ~/.tally -y\ntally tx auction reveal-ask --home ~/.tally -y # once nobody can bid any more",
		func(ctx context.Context, by Sender, args []string) (proto.Message, error) {
			return seal(ctx, by, "", args[0], args[1])
		}}
	sealBid = Message{"seal-bid ORDER PRICE", "Bid for an order in the clearing under way a secret price of a unit at most, in utally; tally batch does it by itself",
		"tally tx auction seal-bid 3f09… 1200 --home ~/.tally -y\ntally tx auction reveal-bid 3f09… --home ~/.tally -y # once nobody can bid any more",
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

// sealed asks how far the clearing under way is, and for the sender's bid for an order, or its ask.
func sealed(ctx context.Context, by Sender, order string) (*auctionv1.QuerySealResponse, error) {
	return auctionv1.NewQueryClient(by).Seal(ctx, &auctionv1.QuerySealRequest{Bidder: by.Account, Order: order})
}

func seal(ctx context.Context, by Sender, order, tier, text string) (proto.Message, error) {
	r, err := sealed(ctx, by, order)
	if err != nil {
		return nil, err
	}
	price, err := strconv.ParseUint(text, 10, 64)
	switch p := r.Progress; {
	case err != nil || price < 1 || price > auction.MaxAsk:
		return nil, fmt.Errorf("price %q: want a number of utally for 10⁹ operations, from 1 to %d", text, uint64(auction.MaxAsk))
	case p == nil:
		return nil, fmt.Errorf("no clearing is under way: tally market shows when the next one begins")
	case p.RevealsUntil == 0:
		return nil, fmt.Errorf("bids of clearing %d are open: what an order locks and what is on sale are the bids", p.Number)
	case r.Seal != nil:
		return nil, fmt.Errorf("a bid is sealed already in clearing %d, and stands: reveal it once nobody can bid any more, by tally tx auction reveal-ask, or reveal-bid ORDER", p.Number)
	}
	return seals.In(by.HomeDir).Seal(by.ChainID, by.Account, r.Progress.Number, order, tier, price)
}

func reveal(ctx context.Context, by Sender, order string) (proto.Message, error) {
	r, err := sealed(ctx, by, order)
	if err != nil {
		return nil, err
	}
	if r.Seal == nil {
		return nil, fmt.Errorf("%s has sealed no such bid in the clearing under way: tally query auction seals lists those that are sealed", by.Account)
	}
	return seals.In(by.HomeDir).Open(r.Progress.Number, r.Seal)
}
