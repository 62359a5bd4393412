package auction

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/auction"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// maxTried is how many trades of a clearing a block tries to lease.
const maxTried = 64

// maxSellers bounds the providers of an auction's lease, each of which is entered in an index when it begins.
const maxSellers = 128

// award begins leases of what a clearing has sold, and ends the clearing once all were tried.
func (k *Keeper) award(ctx context.Context, p *auctionv1.Progress, market Market) error {
	c, err := k.clearing.Get(ctx)
	if err != nil {
		return err
	}
	b, rules, err := wire.BookOf(&c)
	if err != nil {
		return err
	}
	best, _, err := wire.ClaimOf(p)
	if err != nil {
		return err
	}
	out, _, err := auction.Clear(b, rules, best.Measure)
	if err != nil {
		return err
	}
	lend, room, err := market.Lends(ctx)
	if err != nil {
		return err
	}
	for tried := 0; int(p.Tried) < len(out.Trades) && tried < maxTried && room(); tried++ {
		t := &out.Trades[p.Tried]
		p.Tried++
		order, err := canon.HashOf(c.Demands[t.Task].Order)
		if err != nil {
			return err
		}
		able := true
		err = module.Attempt(ctx, func(ctx context.Context) error {
			sellers, err := k.sold(ctx, &c, t)
			if able = len(sellers) > 0; err == nil {
				able, err = lend(ctx, order, sellers, c.Params.FeeBps)
			}
			return err
		})
		if err == nil {
			p.Leased++
			continue
		}
		if able {
			err = errors.Join(k.sitOut(ctx, &c, t), k.obstacle(ctx, c.Number, order.String(), err))
		} else {
			err = errors.Join(k.takeOff(ctx, &c, t), k.obstacle(ctx, c.Number, order.String(), err))
		}
		if err != nil {
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

// sitOut keeps an order out of clearings whose lease could not begin, for twice as long each time: otherwise an order that can have
// none would keep what it wins from the others.
func (k *Keeper) sitOut(ctx context.Context, c *auctionv1.Clearing, t *auction.Trade) error {
	d, err := orNone(k.demands.Get(ctx, c.Demands[t.Task].Number))
	if err != nil || d.Number == 0 {
		return err
	}
	d.After = module.Now(ctx) + c.Params.PeriodMs<<min(d.Failed, maxSitOut)
	d.Failed = min(d.Failed+1, maxAge)
	return k.demands.Set(ctx, d.Number, d)
}

// maxSitOut is how often the time that an order sits out is doubled.
const maxSitOut = 10

// takeOff takes lots off sale whose sellers cannot take a unit of what they have sold.
func (k *Keeper) takeOff(ctx context.Context, c *auctionv1.Clearing, t *auction.Trade) (err error) {
	for _, f := range t.Fills {
		err = errors.Join(err, k.edit(ctx, c.Sellers[f.Provider].Provider, func(have *auctionv1.Capacity) {
			if i := lotOf(have, c.Tiers[f.Kind]); i >= 0 {
				have.Lots = slices.Delete(have.Lots, i, i+1)
			}
		}))
	}
	return err
}

// sold takes what a trade sells off its providers' capacity, and returns those that may get work now, at its price.
func (k *Keeper) sold(ctx context.Context, c *auctionv1.Clearing, t *auction.Trade) (out []providerv1.Candidate, err error) {
	rates, err := job.CapacityRates(t.Due[t.Fills[0].Kind]/c.Demands[t.Task].Units, c.Params.Balance)
	if err != nil {
		return nil, err
	}
	for _, f := range t.Fills {
		s := &c.Sellers[f.Provider]
		account, err := address.Parse(s.Provider)
		if err != nil {
			return nil, err
		}
		x, _, err := k.registry.Seller(ctx, account)
		if err != nil {
			return nil, err
		}
		if !k.registry.Free(ctx, x) {
			continue
		}
		err = k.edit(ctx, s.Provider, func(have *auctionv1.Capacity) {
			if i := lotOf(have, c.Tiers[f.Kind]); i >= 0 {
				if have.Lots[i].Units -= min(have.Lots[i].Units, f.Units); have.Lots[i].Units == 0 {
					have.Lots = slices.Delete(have.Lots, i, i+1)
				}
			}
		})
		if err != nil {
			return nil, err
		}
		x.UnitPrice, x.BytePrice = rates.GFLOP, rates.GB
		out = append(out, x)
	}
	switch {
	case len(out) == 0:
		return nil, errors.New("none of those who sold it capacity may get work any more")
	case len(out) > maxSellers:
		return nil, fmt.Errorf("%d providers sold it capacity, a lease of an auction has at most %d", len(out), maxSellers)
	}
	return out, nil
}
