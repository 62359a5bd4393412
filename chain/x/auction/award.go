package auction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/auction"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
)

// maxTried is how many trades of a clearing a block tries to make sales of, and how many sales it ends.
const maxTried = 64

// maxSellers bounds the providers of an auction's lease, each of which is entered in an index when it begins.
const maxSellers = 128

// award makes sales of what a clearing has sold, and ends the clearing once all trades were tried.
func (k fulfilment) award(ctx context.Context, p *auctionv1.Progress) error {
	c, err := k.clearing.Get(ctx)
	if err != nil {
		return err
	}
	best, _, err := wire.ClaimOf(p)
	if err != nil {
		return err
	}
	out, err := wire.OutcomeOf(&c, best.Measure)
	if err != nil {
		return err
	}
	for tried := 0; int(p.Tried) < len(out.Trades) && tried < maxTried; tried++ {
		t := &out.Trades[p.Tried]
		p.Tried++
		why := k.sell(ctx, &c, t)
		if why == nil {
			p.Sales++
			continue
		}
		if err := k.failed(ctx, p, &c, t, why); err != nil {
			return err
		}
	}
	if int(p.Tried) < len(out.Trades) {
		return k.progress.Set(ctx, *p)
	}
	return k.endClearing(ctx, p, &c, out)
}

func (k *Keeper) obstacle(ctx context.Context, clearing uint64, order string, why error) error {
	return module.Emit(ctx, &auctionv1.EventObstacle{Clearing: clearing, Order: order, Reason: why.Error()})
}

// sitOut keeps an order out of clearings whose lease could not begin, for twice as long each time.
func (k *Keeper) sitOut(ctx context.Context, number uint64) error {
	d, err := orNone(k.demands.Get(ctx, number))
	if err != nil || d.Number == 0 {
		return err
	}
	params, err := k.rules.Get(ctx)
	if err != nil {
		return err
	}
	d.After = module.Now(ctx) + auction.SitOut(params.PeriodMs, d.Failed)
	d.Failed = min(d.Failed+1, maxAge)
	return k.demands.Set(ctx, d.Number, d)
}

// failure is why a trade cannot be a sale.
type failure struct {
	why     error
	missing []auction.Fill // of sellers that cannot take on what they have sold; none if it is the order's fault
}

// sell makes a sale of one trade, or says why not.
func (k fulfilment) sell(ctx context.Context, c *auctionv1.Clearing, t *auction.Trade) *failure {
	var f failure
	f.why = module.Attempt(ctx, func(ctx context.Context) (err error) {
		f.missing, err = k.sold(ctx, c, t)
		return err
	})
	if f.why == nil {
		return nil
	}
	return &f
}

// failed lets who is at fault make room: sellers whose lots are taken off sale, or else the order.
func (k fulfilment) failed(ctx context.Context, p *auctionv1.Progress, c *auctionv1.Clearing, t *auction.Trade, f *failure) error {
	d := &c.Demands[t.Task]
	err := k.obstacle(ctx, c.Number, orderOf(d), f.why)
	if len(f.missing) == 0 {
		return errors.Join(err, k.sitOut(ctx, d.Number))
	}
	for _, x := range f.missing {
		account, bad := address.Parse(c.Sellers[x.Provider].Provider)
		if bad != nil {
			return bad
		}
		err = errors.Join(err, k.withdraw(ctx, account, c.Tiers[x.Kind]), commitReveal(k).forfeit(ctx, p, account))
	}
	return err
}

// sold takes what a trade sells off its providers' capacity, and makes a sale of it. It returns the fills of those that may get
// no work now, or cannot put up the bond.
func (k fulfilment) sold(ctx context.Context, c *auctionv1.Clearing, t *auction.Trade) (missing []auction.Fill, err error) {
	d, err := k.demands.Get(ctx, c.Demands[t.Task].Number)
	if err != nil {
		return nil, err
	}
	kind := t.Fills[0].Kind
	price := t.Due[kind] / d.Units
	d.Sale = &auctionv1.Sale{
		Clearing: c.Number, Tier: c.Tiers[kind], Price: price, Pays: max(t.Price/d.Units, price), Balance: c.Params.Balance, FeeBps: c.Params.FeeBps,
		Until: module.Now(ctx) + c.Params.AnswerMs,
	}
	d.After = d.Sale.Until
	fills := slices.Clone(t.Fills) // the largest: more sellers than a lease has are too small to matter
	slices.SortStableFunc(fills, func(x, y auction.Fill) int { return cmp.Compare(y.Units, x.Units) })
	var left uint64
	for _, f := range fills[:min(len(fills), maxSellers)] {
		x, err := k.takes(ctx, c, f, price)
		if err != nil {
			return nil, err
		}
		if x == nil {
			missing = append(missing, f)
			continue
		}
		d.Sale.Sellers, left = append(d.Sale.Sellers, *x), left+f.Units
	}
	if len(missing) > 0 && !auction.Enough(left, d.Units) {
		return missing, fmt.Errorf("of %d units that were sold to it %d are left: the others' providers may get no work any more, have not the stake for the bond of a sale, or sell it no more", d.Units, left)
	}
	return nil, k.hold(ctx, &d)
}

// takes takes one fill off a provider's capacity; none if the provider could not be there for it.
func (k fulfilment) takes(ctx context.Context, c *auctionv1.Clearing, f auction.Fill, price uint64) (*auctionv1.Sold, error) {
	s, tier := &c.Sellers[f.Provider], c.Tiers[f.Kind]
	account, err := address.Parse(s.Provider)
	if err != nil {
		return nil, err
	}
	x := &auctionv1.Sold{Provider: s.Provider, Units: f.Units}
	registry, err := k.registry.Params(ctx)
	if err != nil {
		return nil, err
	}
	if x.Bond, err = bond(&c.Params, price, f.Units, registry.MinProviderStake); err != nil {
		return nil, err
	}
	peer, _, err := k.registry.Seller(ctx, account)
	if err != nil {
		return nil, err
	}
	if can, err := k.registry.Affords(ctx, account, x.Bond); err != nil || !can || !k.registry.Free(ctx, peer) {
		return nil, err
	}
	have, err := orNone(k.capacities.Get(ctx, account))
	if err != nil {
		return nil, err
	}
	i := lotOf(&have, tier)
	if i < 0 || have.Lots[i].Units < f.Units { // it was absent meanwhile
		return nil, nil
	}
	return x, k.edit(ctx, s.Provider, func(have *auctionv1.Capacity) {
		x.Ask, x.Ends = have.Lots[i].Ask, have.Ends
		if have.Lots[i].Units -= f.Units; have.Lots[i].Units == 0 {
			have.Lots = slices.Delete(have.Lots, i, i+1)
		}
	})
}
