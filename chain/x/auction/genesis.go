package auction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"cosmossdk.io/collections"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/core/auction"
	"github.com/tally-network/tally/core/canon"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
)

// DefaultGenesis has nothing on sale.
func DefaultGenesis() *auctionv1.GenesisState {
	return &auctionv1.GenesisState{Next: 1, Params: DefaultParams()}
}

// ValidateGenesis checks a state before import. That each demand is of an order that waits is an invariant.
func ValidateGenesis(g *auctionv1.GenesisState) error {
	if err := errors.Join(CheckParams(g.Params), module.CheckAuthority(g.Authority)); err != nil {
		return fmt.Errorf("auction genesis: %w", err)
	}
	for i, d := range g.Demands {
		if d.Number == 0 || len(d.Order) != len(canon.Hash{}) || i > 0 && d.Number <= g.Demands[i-1].Number {
			return fmt.Errorf("auction genesis: demand of order %d: want each once, by number", d.Number)
		}
		if d.Units < 1 || d.Units > auction.MaxUnits || d.Budget > auction.MaxBudget || d.Fee > d.Budget || max(d.Age, d.Failed, d.Absent) > maxAge || d.After < 0 {
			return fmt.Errorf("auction genesis: demand of order %d: %d units for %d utally with a fee of %d, lost %d times", d.Number, d.Units, d.Budget, d.Fee, d.Age)
		}
		if err := checkSale(d.Sale); err != nil {
			return fmt.Errorf("auction genesis: demand of order %d: %w", d.Number, err)
		}
	}
	for i, c := range g.Capacities {
		if err := checkCapacity(&c); err != nil {
			return fmt.Errorf("auction genesis: capacity of %s: %w", c.Provider, err)
		}
		if _, err := address.Parse(c.Provider); err != nil || len(c.Lots) == 0 || i > 0 && c.Provider <= g.Capacities[i-1].Provider {
			return fmt.Errorf("auction genesis: capacity of %q with %d lots: want some lots of each provider, by account", c.Provider, len(c.Lots))
		}
	}
	for _, x := range g.Seals {
		if _, _, err := bidder(x.Bidder, x.Order); err != nil {
			return fmt.Errorf("auction genesis: a sealed bid: %w", err)
		}
		if x.Deposit < 1 || x.Deposit > maxDeposit {
			return fmt.Errorf("auction genesis: %s gets %d utally back for a sealed bid, want 1 to %d", x.Bidder, x.Deposit, maxDeposit)
		}
	}
	next := max(g.Next, 1)
	for i, c := range g.Cleared {
		if len(g.Cleared) > maxCleared || c.Number >= next || i > 0 && c.Number <= g.Cleared[i-1].Number {
			return fmt.Errorf("auction genesis: clearing %d: want the last %d by number, below %d", c.Number, maxCleared, next)
		}
	}
	return nil
}

// InitGenesis stores a state. A clearing that was under way begins anew, when it is due; its sealed bids get their deposits back.
func (k *Keeper) InitGenesis(ctx context.Context, g *auctionv1.GenesisState) error {
	err := errors.Join(k.rules.Init(ctx, g.Params, g.Authority), k.next.Set(ctx, max(g.Next, 1)))
	for i := range g.Capacities {
		c := &g.Capacities[i]
		account, bad := address.Parse(c.Provider)
		if bad != nil {
			return bad
		}
		c.Clearing = 0
		err = errors.Join(err, k.replace(ctx, account, &auctionv1.Capacity{}, c))
	}
	for _, d := range g.Demands {
		d.Clearing = 0
		if err = errors.Join(err, k.demands.Set(ctx, d.Number, d)); d.Sale != nil {
			err = errors.Join(err, fulfilment{k}.enterSale(ctx, &d))
		}
	}
	for i := range g.Seals {
		err = errors.Join(err, commitReveal{k}.refund(ctx, &g.Seals[i]))
	}
	for _, c := range g.Cleared {
		err = errors.Join(err, k.cleared.Set(ctx, c.Number, c))
	}
	return err
}

// ExportGenesis is the inverse of InitGenesis, but for deposits of sealed bids.
func (k *Keeper) ExportGenesis(ctx context.Context) (*auctionv1.GenesisState, error) {
	g := &auctionv1.GenesisState{}
	var err error
	if g.Params, err = k.rules.Get(ctx); err != nil {
		return nil, err
	}
	if g.Authority, err = k.rules.Authority(ctx); err != nil {
		return nil, err
	}
	if g.Next, err = k.next.Peek(ctx); err != nil {
		return nil, err
	}
	sold := k.capacities.Walk(ctx, nil, func(_ sdk.AccAddress, c auctionv1.Capacity) (bool, error) {
		c.Clearing = 0
		g.Capacities = append(g.Capacities, c)
		return false, nil
	})
	slices.SortFunc(g.Capacities, func(x, y auctionv1.Capacity) int { return cmp.Compare(x.Provider, y.Provider) })
	wanted := k.demands.Walk(ctx, nil, func(_ uint64, d auctionv1.Demand) (bool, error) {
		d.Clearing = 0
		g.Demands = append(g.Demands, d)
		return false, nil
	})
	over := k.cleared.Walk(ctx, nil, func(_ uint64, c auctionv1.Cleared) (bool, error) {
		g.Cleared = append(g.Cleared, c)
		return false, nil
	})
	held := k.seals.Walk(ctx, nil, func(_ bidKey, x auctionv1.Seal) (bool, error) {
		if x.Deposit > 0 {
			g.Seals = append(g.Seals, x)
		}
		return false, nil
	})
	return g, errors.Join(sold, wanted, over, held)
}

// Invariant: every open order that asks for auctions has one demand and nothing else has; indexes name each lot and each end
// once; so they do each sale; a clearing under way has both its parts, and the deposits of its sealed bids are held.
func (k *Keeper) Invariant(ctx context.Context, market Market) error {
	lots, ends := 0, 0
	err := k.capacities.Walk(ctx, nil, func(account sdk.AccAddress, c auctionv1.Capacity) (bool, error) {
		if err := checkCapacity(&c); err != nil || len(c.Lots) == 0 || c.Provider != account.String() {
			return true, errors.Join(err, fmt.Errorf("the capacity of %s is stored as that of %s, with %d lots", account, c.Provider, len(c.Lots)))
		}
		for _, l := range c.Lots {
			if l.Ask == 0 {
				continue
			}
			lots++
			if in, err := k.asks.Has(ctx, collections.Join3(l.Tier, l.Ask, account)); err != nil || !in {
				return true, errors.Join(err, fmt.Errorf("%s sells tier %s at %d, and is not indexed so", account, l.Tier, l.Ask))
			}
		}
		if c.Ends != 0 {
			ends++
			if in, err := k.ends.Has(ctx, collections.Join(c.Ends, account)); err != nil || !in {
				return true, errors.Join(err, fmt.Errorf("the capacity of %s ends at %d, and is not indexed so", account, c.Ends))
			}
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	asks, err := module.First(ctx, k.asks, nil, math.MaxInt)
	if err == nil && len(asks) != lots {
		err = fmt.Errorf("%d lots are for sale, and %d are indexed", lots, len(asks))
	}
	due, also := module.First(ctx, k.ends, nil, math.MaxInt)
	if also == nil && len(due) != ends {
		also = fmt.Errorf("%d capacities end, and %d are indexed", ends, len(due))
	}
	return errors.Join(err, also, k.checkDemands(ctx, market), fulfilment{k}.checkSales(ctx), k.checkClearing(ctx), commitReveal{k}.checkSeals(ctx))
}

func (k *Keeper) checkDemands(ctx context.Context, market Market) error {
	demands := 0
	err := k.demands.Walk(ctx, nil, func(n uint64, d auctionv1.Demand) (bool, error) {
		demands++
		id, err := canon.HashOf(d.Order)
		if err != nil {
			return true, err
		}
		asks, err := market.Asks(ctx, n, id)
		if err == nil && (!asks || d.Number != n) {
			err = fmt.Errorf("order %d does not wait for auctions, and has a demand", n)
		}
		return err != nil, err
	})
	if err != nil {
		return err
	}
	waiting, err := market.Auctioned(ctx)
	if err == nil && waiting != demands {
		err = fmt.Errorf("%d orders wait for auctions, and %d have a demand", waiting, demands)
	}
	return err
}

func (k *Keeper) checkClearing(ctx context.Context) error {
	p, err := orNone(k.progress.Get(ctx))
	if err != nil {
		return err
	}
	c, err := orNone(k.clearing.Get(ctx))
	if err == nil && c.Number != p.Number {
		err = fmt.Errorf("clearing %d is under way, and %d is stored", p.Number, c.Number)
	}
	return err
}
