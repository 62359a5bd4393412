package auction

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/auction"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/demand"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/money"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// A sale lasts until all its sellers have taken the order on, or their time is over. If those who did sold enough, the
// lease begins with them. Otherwise the order waits for the next clearing. The chain asks: only a seller can say that it
// is there.

// fulfilment is what becomes of the trades of a clearing.
type fulfilment struct{ *Keeper }

// Lender is what the market begins leases by.
type Lender = func(ctx context.Context, order canon.Hash, sellers []providerv1.Candidate, bonds []job.Share, feeBps uint32, pays job.Rates) (able bool, err error)

// errAbsent is of orders of whose sellers too few are there.
var errAbsent = errors.New("the others' providers did not take it on in time, or may get no work any more")

func orderOf(d *auctionv1.Demand) string { return hex.EncodeToString(d.Order) }

// bond returns what a provider loses if it does not take on what it has sold at a price of a unit. It is at most a tenth of
// the least stake: else a buyer could sell a provider more than it can put up, and have it taken off sale.
func bond(p *auctionv1.Params, price, units, leastStake uint64) (uint64, error) {
	full, err := money.Scale(price*units, uint64(p.AbsentBps), bps) // no overflow: an order pays at most MaxBudget
	return min(full, leastStake/10), err
}

const bps = 10_000

// hold reserves the bonds of a sale, and lets its sellers be asked.
func (k fulfilment) hold(ctx context.Context, d *auctionv1.Demand) error {
	e := &auctionv1.EventSold{Clearing: d.Sale.Clearing, Order: orderOf(d), Until: d.Sale.Until}
	for _, x := range d.Sale.Sellers {
		account, err := address.Parse(x.Provider)
		if err != nil {
			return err
		}
		if err := k.registry.Reserve(ctx, account, x.Bond); err != nil {
			return err
		}
		e.Providers = append(e.Providers, x.Provider)
	}
	return errors.Join(k.enterSale(ctx, d), module.Emit(ctx, e))
}

// enterSale stores an order to which something is sold, with the indexes.
func (k fulfilment) enterSale(ctx context.Context, d *auctionv1.Demand) error {
	err := errors.Join(k.demands.Set(ctx, d.Number, *d), k.due.Set(ctx, ends(d)))
	for _, x := range d.Sale.Sellers {
		account, bad := address.Parse(x.Provider)
		if bad != nil {
			return bad
		}
		err = errors.Join(err, k.sales.Set(ctx, collections.Join(account, d.Number)))
	}
	return err
}

// ends is the key of when a sale ends.
func ends(d *auctionv1.Demand) collections.Pair[int64, uint64] {
	return collections.Join(d.Sale.Until, d.Number)
}

// TakeOn says that a provider is there for an order that it has sold capacity to. With the last one the lease begins.
func (s msgServer) TakeOn(ctx context.Context, m *auctionv1.MsgTakeOn) (*auctionv1.MsgTakeOnResponse, error) {
	id, err := canon.ParseHash(m.Order)
	if err != nil {
		return nil, errorsmod.Wrap(ErrSale, err.Error())
	}
	number, _, err := s.market.Posted(ctx, id)
	if err != nil {
		return nil, err
	}
	d, err := orNone(s.demands.Get(ctx, number))
	if err != nil {
		return nil, err
	}
	if d.Sale == nil || d.Sale.Clearing != m.Clearing {
		return nil, errorsmod.Wrapf(ErrSale, "nothing that clearing %d sold to order %s waits for its sellers: tally query auction sales %s shows what does", m.Clearing, id, m.Provider)
	}
	i := slices.IndexFunc(d.Sale.Sellers, func(x auctionv1.Sold) bool { return x.Provider == m.Provider })
	switch now := module.Now(ctx); {
	case i < 0:
		return nil, errorsmod.Wrapf(ErrSale, "%s has sold nothing to order %s", m.Provider, id)
	case d.Sale.Sellers[i].Taken:
		return nil, errorsmod.Wrapf(ErrSale, "you have taken order %s on already: its lease begins once its other sellers have", id)
	case now >= d.Sale.Until:
		return nil, errorsmod.Wrapf(ErrSale, "it could be taken on before %s, and it is %s", wire.Moment(d.Sale.Until), wire.Moment(now))
	}
	err = s.due.Remove(ctx, ends(&d))
	d.Sale.Sellers[i].Taken = true
	if !slices.ContainsFunc(d.Sale.Sellers, func(x auctionv1.Sold) bool { return !x.Taken }) {
		d.Sale.Until = module.Now(ctx) // nobody is waited for
	}
	return &auctionv1.MsgTakeOnResponse{}, errors.Join(err, s.due.Set(ctx, ends(&d)), s.demands.Set(ctx, number, d),
		module.Emit(ctx, &auctionv1.EventTakenOn{Order: m.Order, Provider: m.Provider}))
}

// part undoes what a sale binds, of a demand that the caller stores or removes. Who was silent until its time was over
// loses its bond, and sells nothing any more; all others have theirs back. It returns what they have sold.
func (k fulfilment) part(ctx context.Context, d *auctionv1.Demand) (sale *auctionv1.Sale, came []auctionv1.Sold, err error) {
	sale = d.Sale
	over := module.Now(ctx) >= sale.Until
	err = k.due.Remove(ctx, ends(d))
	for _, x := range sale.Sellers {
		account, bad := address.Parse(x.Provider)
		if bad != nil {
			return nil, nil, bad
		}
		err = errors.Join(err, k.sales.Remove(ctx, collections.Join(account, d.Number)))
		if x.Taken || !over {
			came = append(came, x)
			err = errors.Join(err, k.registry.Release(ctx, account, x.Bond))
			continue
		}
		err = errors.Join(err, k.registry.Slash(ctx, account, x.Bond, 0, nil), k.edit(ctx, x.Provider, func(c *auctionv1.Capacity) { c.Lots = nil }),
			module.Emit(ctx, &auctionv1.EventAbsent{Order: orderOf(d), Provider: x.Provider, Bond: x.Bond}))
	}
	if d.Sale = nil; len(came) < len(sale.Sellers) {
		d.Absent = min(d.Absent+1, maxAge)
	}
	return sale, came, err
}

// putBack puts units on sale again whose sale came to nothing, unless their provider's capacity has ended.
func (k fulfilment) putBack(ctx context.Context, tier string, sold []auctionv1.Sold) (err error) {
	for _, x := range sold {
		account, bad := address.Parse(x.Provider)
		if bad != nil {
			return bad
		}
		before, bad := orNone(k.capacities.Get(ctx, account))
		if bad != nil || x.Ends != 0 && x.Ends <= module.Now(ctx) {
			err = errors.Join(err, bad)
			continue
		}
		after := before
		after.Provider, after.Ends, after.Lots = x.Provider, x.Ends, slices.Clone(before.Lots)
		if i := lotOf(&after, tier); i >= 0 {
			after.Lots[i].Units += x.Units // what it was before
		} else {
			at, _ := slices.BinarySearchFunc(after.Lots, tier, func(l auctionv1.Lot, t string) int { return cmp.Compare(l.Tier, t) })
			after.Lots = slices.Insert(after.Lots, at, auctionv1.Lot{Tier: tier, Units: x.Units, Ask: x.Ask})
		}
		err = errors.Join(err, k.replace(ctx, account, &before, &after))
	}
	return err
}

// endSales ends the sales that all have taken on, and those whose time is over.
func (k fulfilment) endSales(ctx context.Context, market Market) error {
	due, err := module.First(ctx, k.due, collections.NewPrefixUntilPairRange[int64, uint64](module.Now(ctx)), maxTried)
	if err != nil || len(due) == 0 {
		return err
	}
	lend, room, err := market.Lends(ctx)
	if err != nil {
		return err
	}
	for _, at := range due {
		if !room() {
			return nil
		}
		why := module.Attempt(ctx, func(ctx context.Context) error { return k.endSale(ctx, lend, at.K2()) })
		if why == nil {
			continue
		}
		if err := k.postpone(ctx, at.K2(), why); err != nil {
			return err
		}
	}
	return nil
}

// postpone lets a sale that cannot end be tried again a period later: it stops no block, and no other sale.
func (k fulfilment) postpone(ctx context.Context, number uint64, why error) error {
	d, err := k.demands.Get(ctx, number)
	if err != nil {
		return err
	}
	params, err := k.rules.Get(ctx)
	if err != nil {
		return err
	}
	err = errors.Join(k.due.Remove(ctx, ends(&d)), k.obstacle(ctx, d.Sale.Clearing, orderOf(&d), why))
	d.Sale.Until = module.Now(ctx) + params.PeriodMs
	return errors.Join(err, k.due.Set(ctx, ends(&d)), k.demands.Set(ctx, number, d))
}

// endSale ends a sale: with a lease, or else with an order that waits for the next clearing.
func (k fulfilment) endSale(ctx context.Context, lend Lender, number uint64) error {
	d, err := k.demands.Get(ctx, number)
	if err != nil {
		return err
	}
	sale, came, err := k.part(ctx, &d)
	if err != nil {
		return err
	}
	d.After = module.Now(ctx) // the clearing that sold it may still be under way, and would let it age
	if err := k.demands.Set(ctx, number, d); err != nil {
		return err
	}
	able := true
	why := module.Attempt(ctx, func(ctx context.Context) (err error) {
		able, err = k.begin(ctx, lend, &d, sale, came)
		return err
	})
	if why == nil {
		return nil
	}
	if err := k.obstacle(ctx, sale.Clearing, orderOf(&d), why); err != nil {
		return err
	}
	back := k.putBack
	if !able { // they have not the stake for any unit
		back = k.takeOff
	}
	if err := back(ctx, sale.Tier, came); err != nil {
		return err
	}
	if able && !errors.Is(why, errAbsent) {
		return k.sitOut(ctx, number)
	}
	d.Age = min(d.Age+1, maxAge)
	return k.demands.Set(ctx, number, d)
}

// begin begins the lease of an order with those who have taken it on. It is able to unless none of them can take a unit.
func (k fulfilment) begin(ctx context.Context, lend Lender, d *auctionv1.Demand, sale *auctionv1.Sale, came []auctionv1.Sold) (able bool, err error) {
	gets, err := demand.Rates(sale.Price, sale.Balance)
	if err != nil {
		return true, err
	}
	pays, err := demand.Rates(sale.Pays, sale.Balance)
	if err != nil {
		return true, err
	}
	var sellers []providerv1.Candidate
	var bonds []job.Share
	var left uint64
	for _, x := range came {
		account, err := address.Parse(x.Provider)
		if err != nil {
			return true, err
		}
		peer, _, err := k.registry.Seller(ctx, account)
		if err != nil {
			return true, err
		}
		if !k.registry.Free(ctx, peer) {
			continue
		}
		peer.UnitPrice, peer.BytePrice = gets.GFLOP, gets.GB
		peer.Free -= min(peer.Free, x.Bond) // it stands on in the lease
		sellers, bonds, left = append(sellers, peer), append(bonds, job.Share{Account: x.Provider, Amount: x.Bond}), left+x.Units
	}
	if !auction.Enough(left, d.Units) {
		return true, fmt.Errorf("of %d units that were sold to it %d are left: %w", d.Units, left, errAbsent)
	}
	id, err := canon.HashOf(d.Order)
	if err != nil {
		return true, err
	}
	return lend(ctx, id, sellers, bonds, sale.FeeBps, pays)
}

// takeOff takes the lots of providers off sale that could not serve what they sold.
func (k fulfilment) takeOff(ctx context.Context, tier string, sold []auctionv1.Sold) (err error) {
	for _, x := range sold {
		account, bad := address.Parse(x.Provider)
		if bad != nil {
			return bad
		}
		err = errors.Join(err, k.withdraw(ctx, account, tier))
	}
	return err
}

// Reserved returns, by account, the stake that sales reserve, in utally.
func (k *Keeper) Reserved(ctx context.Context) (map[string]uint64, error) {
	sum := map[string]uint64{}
	err := k.demands.Walk(ctx, nil, func(_ uint64, d auctionv1.Demand) (bool, error) {
		if d.Sale != nil {
			for _, x := range d.Sale.Sellers {
				sum[x.Provider] += x.Bond
			}
		}
		return false, nil
	})
	return sum, err
}

// checkSales: each sale, and each provider's part of it, is in the indexes, and nothing else is.
func (k fulfilment) checkSales(ctx context.Context) error {
	due, parts := 0, 0
	err := k.demands.Walk(ctx, nil, func(n uint64, d auctionv1.Demand) (bool, error) {
		if d.Sale == nil {
			return false, nil
		}
		due++
		if in, err := k.due.Has(ctx, ends(&d)); err != nil || !in {
			return true, errors.Join(err, fmt.Errorf("what is sold to order %d ends at %d, and is not indexed so", n, ends(&d).K1()))
		}
		for _, x := range d.Sale.Sellers {
			parts++
			account, err := address.Parse(x.Provider)
			if err != nil {
				return true, err
			}
			if in, err := k.sales.Has(ctx, collections.Join(account, n)); err != nil || !in {
				return true, errors.Join(err, fmt.Errorf("%s has sold something to order %d, and is not indexed so", x.Provider, n))
			}
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	all, err := module.First(ctx, k.due, nil, math.MaxInt)
	if err != nil {
		return err
	}
	of, err := module.First(ctx, k.sales, nil, math.MaxInt)
	if err == nil && (len(all) != due || len(of) != parts) {
		err = fmt.Errorf("%d sales have %d parts, and %d and %d are indexed", due, parts, len(all), len(of))
	}
	return err
}

// checkSale checks a sale before import.
func checkSale(x *auctionv1.Sale) error {
	if x == nil {
		return nil
	}
	if x.Clearing == 0 || x.Tier == "" || x.Price < 1 || x.Pays < x.Price || x.Pays > auction.MaxBudget || len(x.Sellers) < 1 || len(x.Sellers) > maxSellers || x.Until < 0 {
		return fmt.Errorf("a sale of clearing %d in tier %q at %d utally, by %d providers", x.Clearing, x.Tier, x.Price, len(x.Sellers))
	}
	seen := map[string]bool{}
	for _, s := range x.Sellers {
		if _, err := address.Parse(s.Provider); err != nil || seen[s.Provider] {
			return fmt.Errorf("a sale by %q: want each provider once", s.Provider)
		}
		seen[s.Provider] = true
		if s.Units < 1 || s.Units > auction.MaxUnits || s.Ask > auction.MaxAsk || s.Ends < 0 || s.Bond > auction.MaxBudget {
			return fmt.Errorf("%s has sold %d units with a bond of %d utally", s.Provider, s.Units, s.Bond)
		}
	}
	return nil
}
