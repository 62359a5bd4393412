package seals

import (
	"context"
	"sync"

	sdk "github.com/cosmos/cosmos-sdk/types"

	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
)

// step is what is to be done about a bid.
type step int

const (
	nothing step = iota
	seal
	reveal
)

// due says what is to be done about a bid at a protocol time, as the chain tells how far the clearing and the bid are.
func due(r *auctionv1.QuerySealResponse, now int64) step {
	switch p := r.Progress; {
	case p == nil || p.RevealsUntil == 0:
	case r.Seal == nil && !r.Waits && now < p.ClosesAt:
		return seal
	case r.Seal != nil && r.Seal.Price == 0 && p.RevealedAt == 0 && now >= p.ClosesAt && now < p.RevealsUntil:
		return reveal
	}
	return nothing
}

// Bidder bids by itself for an account.
type Bidder struct {
	Dir            Dir
	Chain, Account string
	Query          auctionv1.QueryClient
	Send           func(context.Context, ...sdk.Msg) error

	tried sync.Map // the last clearing in which it has bid, by order
}

// Pick says what is bid in a clearing for a unit, and in which tier if it is an ask. A price of 0 bids nothing yet.
type Pick func(clearing uint64) (tier string, price uint64, err error)

// Step seals or reveals a bid for an order, or without one an ask, if that is due at a protocol time. It returns the number of a
// clearing in which it has sealed one, or 0.
func (b *Bidder) Step(ctx context.Context, order string, now int64, pick Pick) (sealed uint64, err error) {
	r, err := b.Query.Seal(ctx, &auctionv1.QuerySealRequest{Bidder: b.Account, Order: order})
	if err != nil {
		return 0, err
	}
	switch due(r, now) {
	case reveal:
		m, err := b.Dir.Open(r.Progress.Number, r.Seal)
		if err != nil {
			return 0, err
		}
		return 0, b.Send(ctx, m)
	case seal:
		n := r.Progress.Number
		if last, tried := b.tried.Load(order); tried && last == n { // a refusal costs a fee: once in a clearing
			return 0, nil
		}
		tier, price, err := pick(n)
		if err != nil || price == 0 {
			return 0, err
		}
		b.tried.Store(order, n)
		m, err := b.Dir.Seal(b.Chain, b.Account, n, order, tier, price)
		if err != nil {
			return 0, err
		}
		if err := b.Send(ctx, m); err != nil {
			return 0, err
		}
		return n, b.Dir.Clean(n)
	}
	return 0, nil
}
