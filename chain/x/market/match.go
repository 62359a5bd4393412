package market

import (
	"context"
	"fmt"
	"slices"

	"cosmossdk.io/collections"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/auction"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
)

// What one block does at most. What is left is for the next blocks.
const (
	maxTries   = 64      // open orders that it tries
	maxNew     = 512     // the newest orders among which it looks for new ones that it tries
	maxBegins  = 4       // offers that it tries for an order, if a lease cannot begin
	maxWeighed = 1 << 17 // providers that it weighs for them
	maxExpired = 128     // orders whose time has run out that it refunds, the longest due first
)

// EndBlock refunds orders that nobody met in time, then matches the others.
func (b book) EndBlock(ctx context.Context) error {
	if err := b.expire(ctx); err != nil {
		return err
	}
	return b.match(ctx)
}

// expire refunds the open orders whose time has run out.
func (b book) expire(ctx context.Context) error {
	due, err := keys(ctx, b.expiries, collections.NewPrefixUntilPairRange[int64, uint64](
		module.Now(ctx)), maxExpired)
	if err != nil {
		return err
	}
	for _, d := range due {
		if err := b.expireOne(ctx, d.K2()); err != nil {
			return err
		}
	}
	return nil
}

func (b book) expireOne(ctx context.Context, number uint64) error {
	id, err := b.byNumber(ctx, number)
	if err != nil {
		return err
	}
	o, p, err := b.Order(ctx, id)
	if err != nil {
		return err
	}
	err = module.Attempt(ctx, func(ctx context.Context) error {
		return b.close(ctx, id, o.Consumer, p, marketv1.STATUS_EXPIRED)
	})
	if err != nil {
		return module.Emit(ctx, &marketv1.EventObstacle{Order: id.String(), Reason: err.Error()})
	}
	return nil
}

// match tries the open orders, oldest first, or those whose turn it is.
func (b book) match(ctx context.Context) error {
	orders, err := b.waiting(ctx, maxTries)
	if err != nil || len(orders) == 0 {
		return err
	}
	now, err := b.stock(ctx, sdk.UnwrapSDKContext(ctx).BlockHeight())
	if err != nil {
		return err
	}
	if tries := maxWeighed / max(now.weight(), 1); tries < len(orders) {
		if orders, err = b.waiting(ctx, tries); err != nil {
			return err
		}
	}
	for _, id := range orders {
		o, p, err := b.Order(ctx, id)
		if err != nil {
			return err
		}
		leased, err := b.lease(ctx, &now, id, &o, p)
		if err == nil && leased {
			err = b.refresh(ctx, &now)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// waiting returns the open orders that a block tries, oldest first: all of them, or so
// many. Half of these are the newest, so that a new order does not wait behind many that
// nobody meets. The others follow a number that moves with the height, so that every
// order has its turn.
func (b book) waiting(ctx context.Context, most int) ([]canon.Hash, error) {
	open, err := keys(ctx, b.byStatus, opens(), most+1)
	if err != nil {
		return nil, err
	}
	if len(open) <= most {
		return b.ready(ctx, open)
	}
	// Those that were posted in this block are newer, and not ready.
	newest, err := keys(ctx, b.byStatus, opens().Descending(), maxNew)
	if err != nil {
		return nil, err
	}
	slices.Reverse(newest)
	first, cut := open[0].K2(), newest[0].K2()
	ready, err := b.ready(ctx, newest)
	if err != nil {
		return nil, err
	}
	if n := len(ready) - (most+1)/2; n > 0 {
		ready = ready[n:]
		p, err := b.postings.Get(ctx, ready[0][:])
		if err != nil {
			return nil, err
		}
		cut = p.Number
	}
	if cut == first {
		return ready, nil
	}
	n := most - len(ready)
	from := first + uint64(sdk.UnwrapSDKContext(ctx).BlockHeight())*uint64(n)%(cut-first)
	late, err := keys(ctx, b.byStatus, opens().StartInclusive(from).EndExclusive(cut), n)
	if err != nil {
		return nil, err
	}
	early, err := keys(ctx, b.byStatus, opens().EndExclusive(from), n-len(late))
	if err != nil {
		return nil, err
	}
	old, err := b.ready(ctx, append(early, late...))
	return append(old, ready...), err
}

// opens is the range of the open orders.
func opens() *collections.PairRange[int32, uint64] {
	return collections.NewPrefixedPairRange[int32, uint64](int32(marketv1.STATUS_OPEN))
}

// ready returns the ids of those orders that can be matched now: they were posted below
// this height, and their time has not run out.
func (b book) ready(ctx context.Context, numbers []collections.Pair[int32, uint64]) (out []canon.Hash, err error) {
	height, now := sdk.UnwrapSDKContext(ctx).BlockHeight(), module.Now(ctx)
	for _, n := range numbers {
		id, err := b.byNumber(ctx, n.K2())
		if err != nil {
			return nil, err
		}
		p, err := b.postings.Get(ctx, id[:])
		if err != nil {
			return nil, err
		}
		if p.Height < height && p.ExpiresAt > now {
			out = append(out, id)
		}
	}
	return out, nil
}

// lease gives an order to the best offer that meets it; where a lease cannot
// begin, to the next best.
func (b book) lease(ctx context.Context, s *stock, id canon.Hash, o *job.Order, p marketv1.Posting) (bool, error) {
	var offers []auction.Offer
	bids := map[string]bid{}
	for _, x := range s.bids(o) {
		if x.obstacle == nil {
			offers = append(offers, x.Offer)
			bids[x.Validator] = x
		}
	}
	for range maxBegins {
		best, ok := auction.Best(o.Conditions.Bid(), offers)
		if !ok {
			break
		}
		err := module.Attempt(ctx, func(ctx context.Context) error {
			return b.begin(ctx, s, bids[best.Validator], id, o, p)
		})
		if err == nil {
			return true, nil
		}
		if err := module.Emit(ctx, &marketv1.EventObstacle{Order: id.String(), Validator: best.Validator, Reason: err.Error()}); err != nil {
			return false, err
		}
		offers = slices.DeleteFunc(offers, func(x auction.Offer) bool { return x == best })
	}
	return false, nil
}

// begin begins the lease of an order that meets x, and returns what the price
// leaves of the maximum.
func (b book) begin(ctx context.Context, s *stock, x bid, id canon.Hash, o *job.Order, p marketv1.Posting) error {
	seed, err := b.seeds.Seed(ctx)
	if err != nil {
		return err
	}
	quote, err := b.leases.Begin(ctx, job.Match{
		Order: *o, Lead: x.Validator, FeeBps: x.fee, Providers: parties(x.team),
		Validators: parties(s.referees(x.Validator)), Seed: seed, Params: s.rules, Deposit: p.Deposit,
	})
	if err != nil {
		return err
	}
	if quote.Price > p.Escrow-p.Deposit {
		return fmt.Errorf("the lease costs %d utally, %d are locked", quote.Price, p.Escrow-p.Deposit)
	}
	surplus := p.Escrow - p.Deposit - quote.Price
	if err := b.send(ctx, o.Consumer, surplus); err != nil {
		return err
	}
	after := p
	after.Status, after.Escrow, after.Validator, after.Price = marketv1.STATUS_LEASED, p.Escrow-surplus, x.Validator, quote.Price
	if err := b.put(ctx, id, p, after); err != nil {
		return err
	}
	return module.Emit(ctx, &marketv1.EventMatched{Order: id.String(), Validator: x.Validator, Price: quote.Price, Refund: surplus})
}

// keys reads the first keys in a range, at most so many.
func keys[K any](ctx context.Context, set collections.KeySet[K], within collections.Ranger[K], most int) (out []K, err error) {
	err = set.Walk(ctx, within, func(k K) (bool, error) {
		if len(out) == most {
			return true, nil
		}
		out = append(out, k)
		return false, nil
	})
	return out, err
}
