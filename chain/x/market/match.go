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

// What one block does at most: so many open orders it tries to match, and so many
// whose time has run out it refunds, the longest due first. What is left is for the
// next blocks.
const (
	maxTries   = 256
	maxExpired = 128
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
		return emit(ctx, &marketv1.EventObstacle{Order: id.String(), Reason: err.Error()})
	}
	return nil
}

// match tries the open orders, oldest first. When there are more than a block
// can try, each block begins elsewhere, so every order has its turn.
func (b book) match(ctx context.Context) error {
	height := sdk.UnwrapSDKContext(ctx).BlockHeight()
	open, err := b.open(ctx, height)
	if err != nil {
		return err
	}
	var now *stock // read when first wanted, and again after each match
	for _, key := range open {
		id, err := b.byNumber(ctx, key.K2())
		if err != nil {
			return err
		}
		o, p, err := b.Order(ctx, id)
		if err != nil {
			return err
		}
		if p.Height >= height || p.ExpiresAt <= module.Now(ctx) {
			continue
		}
		if now == nil {
			s, err := b.stock(ctx, height)
			if err != nil {
				return err
			}
			now = &s
		}
		switch leased, err := b.lease(ctx, now, id, &o, p); {
		case err != nil:
			return err
		case leased:
			now = nil
		}
	}
	return nil
}

// open returns the open orders that a block tries, oldest first: all, or some of them
// from a number on that moves with the height.
func (b book) open(ctx context.Context, height int64) ([]collections.Pair[int32, uint64], error) {
	all := func() *collections.PairRange[int32, uint64] {
		return collections.NewPrefixedPairRange[int32, uint64](int32(marketv1.STATUS_OPEN))
	}
	open, err := keys(ctx, b.byStatus, all(), maxTries+1)
	if err != nil || len(open) <= maxTries {
		return open, err
	}
	next, err := b.next.Peek(ctx)
	if err != nil {
		return nil, err
	}
	from := uint64(height) * maxTries % next
	late, err := keys(ctx, b.byStatus, all().StartInclusive(from), maxTries)
	if err != nil {
		return nil, err
	}
	early, err := keys(ctx, b.byStatus, all().EndExclusive(from), maxTries-len(late))
	return slices.Concat(late, early), err
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
	for {
		best, ok := auction.Best(o.Conditions.Bid(), offers)
		if !ok {
			return false, nil
		}
		err := module.Attempt(ctx, func(ctx context.Context) error {
			return b.begin(ctx, s, bids[best.Validator], id, o, p)
		})
		if err == nil {
			return true, nil
		}
		if err := emit(ctx, &marketv1.EventObstacle{Order: id.String(), Validator: best.Validator, Reason: err.Error()}); err != nil {
			return false, err
		}
		offers = slices.DeleteFunc(offers, func(x auction.Offer) bool { return x == best })
	}
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
	return emit(ctx, &marketv1.EventMatched{Order: id.String(), Validator: x.Validator, Price: quote.Price, Refund: surplus})
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
