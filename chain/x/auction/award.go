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
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/demand"
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
	best, _, err := wire.ClaimOf(p)
	if err != nil {
		return err
	}
	out, err := wire.OutcomeOf(&c, best.Measure)
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
		why := k.lease(ctx, lend, &c, t, order)
		if why == nil {
			p.Leased++
			continue
		}
		if err := k.failed(ctx, p, &c, t, order, why); err != nil {
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
func (k *Keeper) sitOut(ctx context.Context, c *auctionv1.Clearing, t *auction.Trade) error {
	d, err := orNone(k.demands.Get(ctx, c.Demands[t.Task].Number))
	if err != nil || d.Number == 0 {
		return err
	}
	d.After = module.Now(ctx) + auction.SitOut(c.Params.PeriodMs, d.Failed)
	d.Failed = min(d.Failed+1, maxAge)
	return k.demands.Set(ctx, d.Number, d)
}

// failure is why the lease of a trade could not begin.
type failure struct {
	why     error
	missing []auction.Fill // of sellers that cannot take a unit of what they have sold; none if it is the order's fault
	gone    bool           // they may get no work any more
}

// lease begins the lease of one trade, or says why not.
func (k *Keeper) lease(ctx context.Context, lend Lender, c *auctionv1.Clearing, t *auction.Trade, order canon.Hash) *failure {
	var f failure
	f.why = module.Attempt(ctx, func(ctx context.Context) error {
		sellers, missing, err := k.sold(ctx, c, t)
		if f.missing, f.gone = missing, true; err != nil {
			return err
		}
		rates, err := pays(t, c.Demands[t.Task].Units, c.Params.Balance)
		if err != nil {
			return err
		}
		able, err := lend(ctx, order, sellers, c.Params.FeeBps, rates)
		if f.missing, f.gone = nil, false; !able {
			f.missing = t.Fills
		}
		return err
	})
	if f.why == nil {
		return nil
	}
	return &f
}

// failed lets who is at fault make room: sellers whose lots are taken off sale, or else the order.
func (k *Keeper) failed(ctx context.Context, p *auctionv1.Progress, c *auctionv1.Clearing, t *auction.Trade, order canon.Hash, f *failure) error {
	err := k.obstacle(ctx, c.Number, order.String(), f.why)
	if len(f.missing) == 0 {
		return errors.Join(err, k.sitOut(ctx, c, t))
	}
	for _, x := range f.missing {
		account, bad := address.Parse(c.Sellers[x.Provider].Provider)
		if bad != nil {
			return bad
		}
		err = errors.Join(err, k.withdraw(ctx, account, c.Tiers[x.Kind]))
		if f.gone {
			err = errors.Join(err, sealing{k}.forfeit(ctx, p, account))
		}
	}
	return err
}

// sold takes what a trade sells off its providers' capacity, and returns those that may get work now, at its price, and
// the fills of the others.
func (k *Keeper) sold(ctx context.Context, c *auctionv1.Clearing, t *auction.Trade) (out []providerv1.Candidate, missing []auction.Fill, err error) {
	d := &c.Demands[t.Task]
	rates, err := demand.Rates(t.Due[t.Fills[0].Kind]/d.Units, c.Params.Balance)
	if err != nil {
		return nil, nil, err
	}
	fills := slices.Clone(t.Fills) // the largest: more sellers than a lease has are too small to matter
	slices.SortStableFunc(fills, func(x, y auction.Fill) int { return cmp.Compare(y.Units, x.Units) })
	var left uint64
	for _, f := range fills[:min(len(fills), maxSellers)] {
		s := &c.Sellers[f.Provider]
		account, err := address.Parse(s.Provider)
		if err != nil {
			return nil, nil, err
		}
		x, _, err := k.registry.Seller(ctx, account)
		if err != nil {
			return nil, nil, err
		}
		if !k.registry.Free(ctx, x) {
			missing = append(missing, f)
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
			return nil, nil, err
		}
		x.UnitPrice, x.BytePrice = rates.GFLOP, rates.GB
		out, left = append(out, x), left+f.Units
	}
	if len(missing) > 0 && !auction.Enough(left, d.Units) {
		return nil, missing, fmt.Errorf("of %d units that were sold to it %d are left: the others' providers may get no work any more", d.Units, left)
	}
	return out, missing, nil
}

// Lender is what the market begins leases by.
type Lender = func(ctx context.Context, order canon.Hash, sellers []providerv1.Candidate, feeBps uint32, pays job.Rates) (able bool, err error)

// pays are the rates that an order pays: those that its sellers get, unless the rule leaves a surplus.
func pays(t *auction.Trade, units, balance uint64) (job.Rates, error) {
	return demand.Rates(max(t.Price, t.Due[t.Fills[0].Kind])/units, balance)
}
