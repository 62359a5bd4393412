package market

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"cosmossdk.io/collections"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/book"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
)

// What one block does at most. What is left is for the next blocks.
const (
	maxRetries   = 64      // orders that it tries again with the clusters that have improved
	maxLooks     = 256     // orders that it looks at to find those
	maxBegins    = 4       // offers that it tries for an order, if a lease cannot begin
	maxWeighed   = 1 << 17 // providers weighed for due orders, after which a block tries no more
	maxReweighed = 1 << 15 // providers that it weighs likewise for the others
	maxImproved  = 64      // clusters that have improved that it looks at
	maxExpired   = 128     // orders whose time has run out that it refunds, the longest due first
	maxEnded     = 64      // offers whose end has come that it removes, the longest past first
	maxForgotten = 64      // orders that ended without a lease that it forgets, the oldest first
)

// EndBlock refunds orders that nobody met in time, removes offers that have ended, then matches the others, and forgets those that
// ended without a lease long enough ago.
func (m matcher) EndBlock(ctx context.Context) error {
	if err := m.expire(ctx); err != nil {
		return err
	}
	if err := m.endOffers(ctx); err != nil {
		return err
	}
	if err := m.match(ctx); err != nil {
		return err
	}
	return m.forget(ctx)
}

// forget forgets orders that ended without a lease. Nothing was signed for them, so they may be posted
// again.
func (m matcher) forget(ctx context.Context) error {
	some, err := module.First(ctx, m.refunded, nil, maxForgotten)
	if err != nil || len(some) == 0 {
		return err
	}
	keep, err := m.leases.Retention(ctx)
	if err != nil || keep == 0 {
		return err
	}
	for _, d := range some {
		if d.K1() > module.Now(ctx)-keep {
			return nil
		}
		err := module.Attempt(ctx, func(ctx context.Context) error {
			id, err := m.byNumber(ctx, d.K2())
			if err != nil {
				return err
			}
			return errors.Join(m.Forget(ctx, id), m.refunded.Remove(ctx, d))
		})
		if err != nil { // it stops no block, and is tried again as long after
			err = errors.Join(m.refunded.Remove(ctx, d), m.refunded.Set(ctx, collections.Join(module.Now(ctx), d.K2())),
				module.Emit(ctx, &marketv1.EventObstacle{Reason: fmt.Sprintf("forget order %d: %s", d.K2(), err)}))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// expire refunds the open orders whose time has run out.
func (m matcher) expire(ctx context.Context) error {
	due, err := module.First(ctx, m.expiries, collections.NewPrefixUntilPairRange[int64, uint64](
		module.Now(ctx)), maxExpired)
	if err != nil {
		return err
	}
	for _, d := range due {
		if err := m.expireOne(ctx, d.K2()); err != nil {
			return err
		}
	}
	return nil
}

func (m matcher) expireOne(ctx context.Context, number uint64) error {
	id, err := m.byNumber(ctx, number)
	if err != nil {
		return err
	}
	o, p, err := m.Order(ctx, id)
	if err != nil {
		return err
	}
	err = module.Attempt(ctx, func(ctx context.Context) error {
		return m.close(ctx, id, o.Consumer, p, marketv1.STATUS_EXPIRED)
	})
	if err != nil {
		return module.Emit(ctx, &marketv1.EventObstacle{Order: id.String(), Reason: err.Error()})
	}
	return nil
}

// anyWaiting reports whether orders wait for an offer that meets them.
func (m matcher) anyWaiting(ctx context.Context) (bool, error) {
	some, err := module.First(ctx, m.turns.queue, collections.NewPrefixedTripleRange[bool, int64, uint64](true), 1)
	return len(some) > 0, err
}

// match tries the orders whose turn it is with what is on offer, then those that wait with what
// is on offer anew. Where there is neither it reads short ranges of its indexes, and writes nothing.
// Nothing is drawn: that is for the next block.
func (m matcher) match(ctx context.Context) error {
	due, err := m.due(ctx)
	if err != nil {
		return err
	}
	if len(due) > 0 {
		if err := m.tryDue(ctx, due); err != nil {
			return err
		}
	}
	return m.tryImproved(ctx)
}

// tryDue tries orders with all offers, or with the part of them at which the block looks.
func (m matcher) tryDue(ctx context.Context, orders []canon.Hash) error {
	from, err := m.nextWindow(ctx)
	if err != nil {
		return err
	}
	s, seen, err := m.stock(ctx, sdk.UnwrapSDKContext(ctx).BlockHeight(), from, m.registry.Leads)
	if err != nil {
		return err
	}
	if !seen.whole {
		if err := m.cursor.Set(ctx, seen.until); err != nil {
			return err
		}
	}
	return m.try(ctx, &s, orders, maxWeighed, func(number uint64) error { return m.turns.failed(ctx, number, seen) })
}

// tryImproved tries orders that wait with the clusters that have improved since they were tried.
func (m matcher) tryImproved(ctx context.Context) error {
	some, err := m.anyWaiting(ctx)
	if err != nil || !some {
		return err
	}
	improved, all, err := m.registry.TakeImproved(ctx, turnOf(ctx), maxImproved)
	if err != nil || len(improved) == 0 && !all {
		return err
	}
	orders, err := m.waiting(ctx, maxRetries)
	if err != nil {
		return err
	}
	var s stock
	if all {
		s, _, err = m.stock(ctx, sdk.UnwrapSDKContext(ctx).BlockHeight(), turnOf(ctx), m.registry.Leads)
	} else {
		s, err = m.stockOf(ctx, sdk.UnwrapSDKContext(ctx).BlockHeight(), improved)
	}
	if err != nil {
		return err
	}
	return m.try(ctx, &s, orders, maxReweighed, func(uint64) error { return nil })
}

// try tries orders with what is on offer until it has weighed so many providers, and hands
// the numbers of those that nobody met to failed.
func (m matcher) try(ctx context.Context, s *stock, orders []canon.Hash, weighed int, failed func(uint64) error) error {
	for _, id := range orders {
		if s.work >= weighed {
			break
		}
		o, p, err := m.Order(ctx, id)
		if err != nil {
			return err
		}
		if p.Status != marketv1.STATUS_OPEN || s.improved && o.Conditions.Replicas > 0 { // who improved alone would be all who are drawn from
			continue
		}
		leased, err := m.lease(ctx, s, id, &o, p)
		if err == nil && !leased {
			err = failed(p.Number)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lease gives an order to the best offer that meets it; where a lease cannot
// begin, to the next best.
func (m matcher) lease(ctx context.Context, s *stock, id canon.Hash, o *job.Order, p marketv1.Posting) (bool, error) {
	var offers []book.Offer
	bids := map[string]bid{}
	for _, x := range s.bids(o, false) {
		if x.obstacle == nil {
			offers = append(offers, x.Offer)
			bids[x.Validator] = x
		}
	}
	for range maxBegins {
		best, ok := book.Best(o.Conditions.Bid(), offers)
		if !ok {
			break
		}
		err := module.Attempt(ctx, func(ctx context.Context) error {
			return m.begin(ctx, s, bids[best.Validator], id, o, p)
		})
		if err == nil {
			s.work += beginning * (len(bids[best.Validator].team) + len(s.validators))
			return true, m.refresh(ctx, s, best.Validator)
		}
		if err := module.Emit(ctx, &marketv1.EventObstacle{Order: id.String(), Validator: best.Validator, Reason: err.Error()}); err != nil {
			return false, err
		}
		offers = slices.DeleteFunc(offers, func(x book.Offer) bool { return x == best })
	}
	return false, nil
}

// begin begins the lease of an order that meets x, and returns what the price
// leaves of the maximum.
func (m matcher) begin(ctx context.Context, s *stock, x bid, id canon.Hash, o *job.Order, p marketv1.Posting) error {
	quote, err := m.leases.Begin(ctx, job.Match{
		Order: *o, Lead: x.Validator, Owner: x.owner, FeeBps: x.fee, Providers: parties(x.team.peers()),
		Validators: parties(s.referees(x.owner)), Params: s.rules, Deposit: p.Deposit, Sold: x.sold,
	})
	if err != nil {
		return err
	}
	if quote.Price > p.Escrow-p.Deposit {
		return fmt.Errorf("the lease costs %d utally, %d are locked", quote.Price, p.Escrow-p.Deposit)
	}
	surplus := p.Escrow - p.Deposit - quote.Price
	burnt := min(max(x.pays, quote.Price)-quote.Price, surplus)
	surplus -= burnt
	if err := m.burner.Burn(ctx, Name, burnt); err != nil {
		return err
	}
	if err := m.send(ctx, o.Consumer, surplus); err != nil {
		return err
	}
	after := p
	after.Status, after.Escrow, after.Validator, after.Price = marketv1.STATUS_LEASED, p.Escrow-surplus-burnt, x.Validator, quote.Price
	if err := m.put(ctx, id, p, after); err != nil {
		return err
	}
	if err := m.Record(ctx, o, x.Validator, len(x.team), quote.Price, x.team.ownedBy(o.Consumer)); err != nil {
		return err
	}
	return module.Emit(ctx, &marketv1.EventMatched{Order: id.String(), Validator: x.Validator, Price: quote.Price, Refund: surplus})
}
