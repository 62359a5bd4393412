package auction

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/auction"
	"github.com/tally-network/tally/core/demand"
	"github.com/tally-network/tally/core/job"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// checkCapacity checks what somebody would sell, without the registry.
func checkCapacity(c *auctionv1.Capacity) error {
	if len(c.Lots) > auction.Kinds || c.Ends < 0 {
		return errorsmod.Wrapf(ErrCapacity, "%d lots that end at %d: at most %d, and a protocol time in ms, or 0 for no end", len(c.Lots), c.Ends, auction.Kinds)
	}
	for i, l := range c.Lots {
		switch {
		case l.Tier == "" || i > 0 && l.Tier <= c.Lots[i-1].Tier:
			return errorsmod.Wrapf(ErrCapacity, "lot %d is of tier %.40q: name tiers in byte order, each once", i, l.Tier)
		case l.Units < 1 || l.Units > auction.MaxUnits || l.Ask > auction.MaxAsk:
			return errorsmod.Wrapf(ErrCapacity, "%d units of tier %s at %d utally: want 1 to %d units, for at most as many utally, or for 0 if the ask is sealed", l.Units, l.Tier, l.Ask, uint64(auction.MaxUnits))
		}
	}
	return nil
}

// Sell offers capacity. A provider sells in tiers that its measured speed reaches. What is in a clearing stands
// until that is over: otherwise sellers could look at prices first.
func (s msgServer) Sell(ctx context.Context, m *auctionv1.MsgSell) (*auctionv1.MsgSellResponse, error) {
	account, err := address.Parse(m.Provider)
	if err != nil {
		return nil, err
	}
	after := auctionv1.Capacity{Provider: m.Provider, Lots: m.Lots, Ends: m.Ends}
	if err := checkCapacity(&after); err != nil {
		return nil, err
	}
	if now := module.Now(ctx); m.Ends != 0 && m.Ends <= now {
		return nil, errorsmod.Wrapf(ErrCapacity, "it ends at %s, and it is %s: name a later end, or none", wire.Moment(m.Ends), wire.Moment(now))
	}
	if len(m.Lots) > 0 {
		if err := s.checkSeller(ctx, account, m.Lots); err != nil {
			return nil, err
		}
	}
	before, err := orNone(s.capacities.Get(ctx, account))
	if err != nil {
		return nil, err
	}
	if err := s.mayChange(ctx, "your capacity", before.Clearing); err != nil {
		return nil, err
	}
	if some, err := module.First(ctx, s.sales, collections.NewPrefixedPairRange[sdk.AccAddress, uint64](account), 1); err != nil || len(some) > 0 {
		return nil, cmp.Or(err, errorsmod.Wrap(ErrCapacity, "what you have sold to an order stands until its lease begins: tally query auction sales shows when that is"))
	}
	if len(before.Lots) == 0 && len(m.Lots) == 0 {
		return nil, errorsmod.Wrapf(ErrCapacity, "%s sells nothing that it could withdraw", m.Provider)
	}
	if err := s.replace(ctx, account, &before, &after); err != nil {
		return nil, err
	}
	said, err := orNone(s.said.Get(ctx, account))
	return &auctionv1.MsgSellResponse{}, errors.Join(err, s.said.Set(ctx, account, said+1), module.Emit(ctx, &auctionv1.EventCapacity{Capacity: after}))
}

func (s msgServer) checkSeller(ctx context.Context, account sdk.AccAddress, lots []auctionv1.Lot) error {
	peer, err := s.registry.Get(ctx, account)
	if err != nil {
		return err
	}
	if !slices.Contains(peer.Roles, providerv1.ROLE_PROVIDER) {
		return errorsmod.Wrapf(ErrCapacity, "%s is no provider: register one to sell capacity", account)
	}
	registry, err := s.registry.Params(ctx)
	if err != nil {
		return err
	}
	x, _, err := s.registry.Seller(ctx, account)
	if err != nil {
		return err
	}
	if !s.registry.Free(ctx, x) {
		why := cmp.Or(wire.Unable(&peer, &registry, module.Now(ctx)), "its owner is excluded")
		return errorsmod.Wrapf(ErrCapacity, "%s may get no work now: %s", account, why)
	}
	tiers, others := wire.TiersFromProto(registry.Tiers), uint64(0)
	for _, l := range lots {
		if err := wire.CheckLot(l, others, x.Speed, tiers); err != nil {
			return errorsmod.Wrap(ErrCapacity, err.Error())
		}
		others += l.Units // at most 8 of 2⁴⁰
	}
	return nil
}

// replace stores what a provider sells, with its indexes; nothing to sell is not stored.
func (k *Keeper) replace(ctx context.Context, account sdk.AccAddress, before, after *auctionv1.Capacity) (err error) {
	for _, l := range before.Lots {
		if l.Ask > 0 { // others are in no clearing with open bids
			err = errors.Join(err, k.asks.Remove(ctx, collections.Join3(l.Tier, l.Ask, account)))
		}
	}
	if before.Ends != 0 {
		err = errors.Join(err, k.ends.Remove(ctx, collections.Join(before.Ends, account)))
	}
	if len(after.Lots) == 0 {
		return errors.Join(err, k.capacities.Remove(ctx, account))
	}
	for _, l := range after.Lots {
		if l.Ask > 0 {
			err = errors.Join(err, k.asks.Set(ctx, collections.Join3(l.Tier, l.Ask, account)))
		}
	}
	if after.Ends != 0 {
		err = errors.Join(err, k.ends.Set(ctx, collections.Join(after.Ends, account)))
	}
	return errors.Join(err, k.capacities.Set(ctx, account, *after))
}

// maxEnded is how many capacities whose end has come a block removes.
const maxEnded = 64

// endCapacities removes capacity whose end has come, the longest past first; what is in a clearing goes after it.
func (k *Keeper) endCapacities(ctx context.Context) error {
	due, err := module.First(ctx, k.ends, collections.NewPrefixUntilPairRange[int64, sdk.AccAddress](module.Now(ctx)), maxEnded)
	if err != nil || len(due) == 0 {
		return err
	}
	if _, under, err := k.underWay(ctx); err != nil || under {
		return err
	}
	for _, d := range due {
		c, err := k.capacities.Get(ctx, d.K2())
		if err != nil {
			return err
		}
		none := auctionv1.Capacity{Provider: c.Provider}
		if err := k.replace(ctx, d.K2(), &c, &none); err != nil {
			return err
		}
		if err := module.Emit(ctx, &auctionv1.EventCapacity{Capacity: none}); err != nil {
			return err
		}
	}
	return nil
}

// Enter enters what an order that was just posted, with a number, asks of auctions.
func (k *Keeper) Enter(ctx context.Context, number uint64, o *job.Order) error {
	params, err := k.rules.Get(ctx)
	if err != nil {
		return err
	}
	rules, err := k.leases.Rules(ctx)
	if err != nil {
		return err
	}
	registry, err := k.registry.Params(ctx)
	if err != nil {
		return err
	}
	tier := o.Conditions.Needs.Tier
	if tier != "" {
		if _, err := wire.TiersFromProto(registry.Tiers).Least(tier); err != nil {
			return errorsmod.Wrap(ErrDemand, err.Error())
		}
	}
	if err := rules.Suits(o); err != nil {
		return errorsmod.Wrap(ErrDemand, err.Error())
	}
	terms := demand.Terms{FeeBps: uint64(params.FeeBps), Balance: params.Balance, Rules: &rules, Stake: registry.MinProviderStake}
	d, err := terms.Of(o)
	if err != nil {
		return errorsmod.Wrap(ErrDemand, err.Error())
	}
	if err := suits(&params, d.Units); err != nil {
		return err
	}
	if least := wire.LeastWait(&params); o.Conditions.Expires < least {
		return errorsmod.Wrapf(ErrDemand, "the order expires after %d s: let it wait for %d s at least, so that it is there when a clearing ends", o.Conditions.Expires/1000, (least+999)/1000)
	}
	id := o.ID()
	return k.demands.Set(ctx, number, auctionv1.Demand{
		Number: number, Order: id[:], Tier: tier, Units: d.Units, Budget: d.Budget, Fee: d.Fee,
		Referees: uint32(o.Conditions.Bid().Referees), ExpiresAt: module.Now(ctx) + o.Conditions.Expires,
	})
}
