package auction

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math"
	"slices"

	"cosmossdk.io/collections"
	errorsmod "cosmossdk.io/errors"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/auction"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

const (
	maxCleared = 64 // of the last clearings that are kept
	gasPlace   = 60 // for each place that a certificate names, and for each step of pricing
)

// EndBlock takes off sale what has ended, begins leases of what was sold, and goes on with clearings.
func (k *Keeper) EndBlock(ctx context.Context, market Market) error {
	if err := k.endCapacities(ctx); err != nil {
		return err
	}
	if err := (fulfilment{k}).endSales(ctx, market); err != nil {
		return err
	}
	err := module.Attempt(ctx, func(ctx context.Context) error { return k.clear(ctx, market) })
	if err == nil {
		return nil
	}
	// A clearing that cannot go on stops no block. Its bids stand for the next one.
	p, _, reading := k.underWay(ctx)
	return errors.Join(reading, commitReveal{k}.giveBack(ctx), k.clearing.Remove(ctx), k.progress.Remove(ctx), k.rest(ctx), k.obstacle(ctx, p.Number, "", err))
}

// rest lets a period pass before the next clearing.
func (k *Keeper) rest(ctx context.Context) error {
	params, err := k.rules.Get(ctx)
	if err != nil {
		return err
	}
	return k.after.Set(ctx, module.Now(ctx)+params.PeriodMs)
}

// clear opens a clearing if one is due, closes one whose time is over, or makes sales of one that is closed.
func (k *Keeper) clear(ctx context.Context, market Market) error {
	p, under, err := k.underWay(ctx)
	switch {
	case err != nil:
		return err
	case !under:
		return k.openClearing(ctx, market)
	case p.RevealsUntil != 0 && !p.Closed:
		return commitReveal{k}.unseal(ctx, market, &p)
	case !p.Closed && module.Now(ctx) >= p.ClosesAt:
		return k.closeClearing(ctx, &p)
	case p.Closed:
		return fulfilment{k}.award(ctx, &p)
	}
	return nil
}

// openClearing opens a clearing if it is time, and somebody sells what somebody wants.
func (k *Keeper) openClearing(ctx context.Context, market Market) error {
	after, err := orNone(k.after.Get(ctx))
	if err != nil || module.Now(ctx) < after {
		return err
	}
	params, err := k.rules.Get(ctx)
	if err != nil {
		return err
	}
	if some, err := k.anyLot(ctx, &params); err != nil || !some {
		return err
	}
	if some, err := anyOf(ctx, k.demands); err != nil || !some {
		return err
	}
	if err := k.rest(ctx); err != nil { // whatever comes of it: looking at all bids takes time
		return err
	}
	registry, err := k.registry.Params(ctx)
	if err != nil {
		return err
	}
	c := auctionv1.Clearing{OpenedAt: module.Now(ctx), Params: params}
	c.ClosesAt = c.OpenedAt + params.WindowMs
	tiers := registry.Tiers[max(len(registry.Tiers)-auction.Kinds, 0):] // the slowest, if there are more
	for _, t := range tiers {
		c.Tiers = append(c.Tiers, t.Label)
	}
	if wire.SealedBids(&params) {
		return commitReveal{k}.open(ctx, &c)
	}
	room, referees, err := market.Leading(ctx, params.FeeBps)
	if err != nil {
		return err
	}
	if err := k.takeDemands(ctx, &c, referees, room); err != nil || len(c.Demands) == 0 {
		return err
	}
	if err := k.takeLots(ctx, &c, tiers); err != nil || len(c.Sellers) == 0 {
		return err
	}
	dropUnserved(&c)
	if c.Number, err = k.next.Next(ctx); err != nil {
		return err
	}
	for i := range c.Demands {
		c.Demands[i].Clearing = c.Number
		err = errors.Join(err, k.demands.Set(ctx, c.Demands[i].Number, c.Demands[i]))
	}
	for _, s := range c.Sellers {
		err = errors.Join(err, k.edit(ctx, s.Provider, func(x *auctionv1.Capacity) { x.Clearing = c.Number }))
	}
	slices.SortFunc(c.Demands, func(x, y auctionv1.Demand) int { return bytes.Compare(x.Order, y.Order) })
	err = errors.Join(err, k.clearing.Set(ctx, c), k.progress.Set(ctx, auctionv1.Progress{Number: c.Number, ClosesAt: c.ClosesAt}))
	if err != nil {
		return err
	}
	return module.Emit(ctx, &auctionv1.EventClearing{
		Number: c.Number, Demands: uint32(len(c.Demands)), Sellers: uint32(len(c.Sellers)), ClosesAt: c.ClosesAt,
	})
}

// anyLot reports whether something is on sale by the rules.
func (k *Keeper) anyLot(ctx context.Context, params *auctionv1.Params) (bool, error) {
	if wire.SealedBids(params) {
		return anyOf(ctx, k.capacities)
	}
	some, err := module.First(ctx, k.asks, nil, 1)
	return len(some) > 0, err
}

// anyOf reports whether something is stored.
func anyOf[K, V any](ctx context.Context, m collections.Map[K, V]) (some bool, err error) {
	err = m.Walk(ctx, nil, func(K, V) (bool, error) {
		some = true
		return true, nil
	})
	return some, err
}

// maxLooked is how many demands a clearing looks at for each that it may have.
const maxLooked = 8

// takeDemands enters demands that could become leases: all, or by turns as many as a clearing may have. referees independent
// validators suffice for each, some validator has room to lead it, in utally, and it can pay the least ask of its tier.
func (k *Keeper) takeDemands(ctx context.Context, c *auctionv1.Clearing, referees int, room uint64) error {
	least, err := k.leastAsks(ctx, c)
	if err != nil {
		return err
	}
	from, err := orNone(k.cursor.Get(ctx))
	if err != nil {
		return err
	}
	next, looked := uint64(0), 0
	take := func(part collections.Ranger[uint64]) error {
		return k.demands.Walk(ctx, part, func(n uint64, d auctionv1.Demand) (bool, error) {
			if looked++; len(c.Demands) == int(c.Params.MaxDemands) || looked > maxLooked*int(c.Params.MaxDemands) {
				next = n
				return true, nil
			}
			if d.Sale == nil && (d.Tier == "" || slices.Contains(c.Tiers, d.Tier)) && d.After <= c.OpenedAt && d.ExpiresAt > c.ClosesAt+wire.WaitAfter(&c.Params) && int(d.Referees) <= referees &&
				d.Budget <= room && (d.Budget-d.Fee)/d.Units >= least[wire.KindOf(c, d.Tier)] {
				c.Demands = append(c.Demands, d)
			}
			return false, nil
		})
	}
	if err := take(new(collections.Range[uint64]).StartInclusive(from)); err != nil {
		return err
	}
	if next == 0 && from > 0 {
		if err := take(new(collections.Range[uint64]).EndExclusive(from)); err != nil {
			return err
		}
	}
	if next == 0 && from == 0 {
		return nil
	}
	return k.cursor.Set(ctx, next)
}

// leastAsks returns the least ask for a unit of each tier of a clearing, more than anybody can pay if there is none.
func (k *Keeper) leastAsks(ctx context.Context, c *auctionv1.Clearing) (least [auction.Kinds]uint64, err error) {
	for kind := range least {
		least[kind] = math.MaxUint64
	}
	for kind, tier := range c.Tiers {
		first, err := module.First(ctx, k.asks, collections.NewPrefixedTripleRange[string, uint64, sdk.AccAddress](tier), 1)
		if err != nil {
			return least, err
		}
		if len(first) > 0 {
			least[kind] = first[0].K2()
		}
	}
	return least, nil
}

// dropUnserved leaves out the orders of tiers of which nothing is on sale: they could only lose, and would have to stand meanwhile.
func dropUnserved(c *auctionv1.Clearing) {
	var onSale [auction.Kinds]bool
	for i := range c.Sellers {
		for _, l := range c.Sellers[i].Lots {
			onSale[l.Kind] = true
		}
	}
	c.Demands = slices.DeleteFunc(c.Demands, func(d auctionv1.Demand) bool { return !onSale[wire.KindOf(c, d.Tier)] })
}

// takeLots takes into a clearing the cheapest lots of each tier that an order in it wants. Those whose provider may get no
// work now are off sale.
func (k *Keeper) takeLots(ctx context.Context, c *auctionv1.Clearing, tiers []providerv1.Tier) error {
	sellers, speeds := map[string]*auctionv1.Seller{}, map[string]uint64{}
	able := func(account sdk.AccAddress) (*auctionv1.Seller, error) {
		if s, seen := sellers[string(account)]; seen {
			return s, nil
		}
		x, record, err := k.registry.Seller(ctx, account)
		if err != nil {
			return nil, err
		}
		var s *auctionv1.Seller
		if k.registry.Free(ctx, x) {
			s = &auctionv1.Seller{Provider: x.Account, Account: account, Handicap: auction.Handicap(c.Params.DoubtBps, record)}
		}
		sellers[string(account)], speeds[string(account)] = s, x.Speed
		return s, nil
	}
	var wanted [auction.Kinds]bool
	for i := range c.Demands {
		wanted[wire.KindOf(c, c.Demands[i].Tier)] = true
	}
	for kind, tier := range c.Tiers {
		if !wanted[kind] {
			continue
		}
		asks, err := module.First(ctx, k.asks, collections.NewPrefixedTripleRange[string, uint64, sdk.AccAddress](tier), int(c.Params.MaxLots))
		if err != nil {
			return err
		}
		for _, a := range asks {
			s, err := able(a.K3())
			if err != nil {
				return err
			}
			if s == nil || speeds[string(a.K3())] < tiers[kind].Speed { // a conviction takes the measured speed away
				if err := k.withdraw(ctx, a.K3(), tier); err != nil { // else it would stand before others for good
					return err
				}
				continue
			}
			x, err := k.capacities.Get(ctx, a.K3())
			if err != nil {
				return err
			}
			if i := lotOf(&x, tier); i >= 0 && (x.Ends == 0 || x.Ends > module.Now(ctx)) {
				s.Lots = append(s.Lots, auctionv1.SoldLot{Kind: uint32(kind), Units: x.Lots[i].Units, Ask: a.K2()})
			}
		}
	}
	for _, account := range slices.Sorted(maps.Keys(sellers)) {
		if s := sellers[account]; s != nil && len(s.Lots) > 0 {
			c.Sellers = append(c.Sellers, *s)
		}
	}
	return nil
}

// withdraw takes a provider's lot of a tier off sale.
func (k *Keeper) withdraw(ctx context.Context, provider sdk.AccAddress, tier string) error {
	return k.edit(ctx, provider.String(), func(have *auctionv1.Capacity) {
		if i := lotOf(have, tier); i >= 0 {
			have.Lots = slices.Delete(have.Lots, i, i+1)
		}
	})
}

func lotOf(c *auctionv1.Capacity, tier string) int {
	return slices.IndexFunc(c.Lots, func(l auctionv1.Lot) bool { return l.Tier == tier })
}

// edit changes what a provider sells, if it sells anything.
func (k *Keeper) edit(ctx context.Context, provider string, change func(*auctionv1.Capacity)) error {
	account, err := address.Parse(provider)
	if err != nil {
		return err
	}
	before, err := orNone(k.capacities.Get(ctx, account))
	if err != nil || len(before.Lots) == 0 {
		return err
	}
	after := before
	after.Lots = slices.Clone(before.Lots)
	change(&after)
	return k.replace(ctx, account, &before, &after)
}

// PostClearing checks a certificate at once: it takes linear time, and its poster pays for it. The best one is kept.
func (s msgServer) PostClearing(ctx context.Context, m *auctionv1.MsgPostClearing) (*auctionv1.MsgPostClearingResponse, error) {
	if _, err := address.Parse(m.Poster); err != nil {
		return nil, err
	}
	p, under, err := s.underWay(ctx)
	switch {
	case err != nil:
		return nil, err
	case under && p.RevealsUntil != 0:
		return nil, errorsmod.Wrapf(ErrClearing, "clearing %d has sealed bids, from which one result follows: there is no certificate to post", p.Number)
	case !under || p.Number != m.Clearing || p.Closed || module.Now(ctx) >= p.ClosesAt:
		return nil, errorsmod.Wrapf(ErrClearing, "clearing %d takes no certificates: tally market --certificate finds the one that does", m.Clearing)
	}
	cert, err := wire.CertificateFromProto(&m.Certificate)
	if err != nil {
		return nil, errorsmod.Wrap(ErrCertificate, err.Error())
	}
	places := len(cert.Tasks)
	for _, list := range cert.Sellers {
		places += len(list)
	}
	module.Charge(ctx, uint64(places)*gasPlace, "certificate")
	best, posted, err := wire.ClaimOf(&p)
	if err != nil {
		return nil, err
	}
	if posted && !cert.Better(&best) {
		return nil, errorsmod.Wrapf(ErrCertificate, "a welfare of %d utally in %d trades is no better than what %s has posted, %d in %d", cert.Welfare, cert.Trades, p.Poster, p.Welfare, p.Trades)
	}
	c, err := s.clearing.Get(ctx)
	if err != nil {
		return nil, err
	}
	b, rules, err := wire.BookOf(&c)
	if err != nil {
		return nil, err
	}
	if rules.Rule == auction.Critical { // beside that, each winner's price takes a step for each task, whatever is claimed
		module.Charge(ctx, uint64(len(cert.Tasks)*len(cert.Tasks))*gasPlace, "prices")
	}
	if _, err := auction.Check(b, rules, cert); err != nil {
		return nil, errorsmod.Wrap(ErrCertificate, err.Error())
	}
	measure := m.Certificate.Measure
	p.Measure, p.Welfare, p.Trades, p.Poster = &measure, cert.Welfare, cert.Trades, m.Poster
	if err := s.progress.Set(ctx, p); err != nil {
		return nil, err
	}
	return &auctionv1.MsgPostClearingResponse{}, module.Emit(ctx, &auctionv1.EventCertificate{Clearing: p.Number, Poster: m.Poster, Welfare: p.Welfare, Trades: p.Trades})
}

// closeClearing takes the best certificate, or what the chain finds by the measures that it knows if that is better.
func (k *Keeper) closeClearing(ctx context.Context, p *auctionv1.Progress) error {
	c, err := k.clearing.Get(ctx)
	if err != nil {
		return err
	}
	b, rules, err := wire.BookOf(&c)
	if err != nil {
		return err
	}
	_, own, err := auction.Fallback(b, rules)
	if err != nil {
		return err
	}
	best, posted, err := wire.ClaimOf(p)
	if err != nil {
		return err
	}
	if !posted || own.Better(&best) {
		p.Measure, p.Welfare, p.Trades, p.Poster = wire.MeasureToProto(own.Measure), own.Welfare, own.Trades, ""
	}
	p.Closed = true
	return k.progress.Set(ctx, *p)
}

// endClearing lets those age that have lost, and keeps what came of the clearing.
func (k *Keeper) endClearing(ctx context.Context, p *auctionv1.Progress, c *auctionv1.Clearing, out *auction.Outcome) error {
	for _, d := range c.Demands {
		x, err := orNone(k.demands.Get(ctx, d.Number))
		if err != nil {
			return err
		}
		if x.Number == 0 || x.After > c.ClosesAt { // it has left the book, or has won
			continue
		}
		x.Age = min(x.Age+1, maxAge)
		if err := k.demands.Set(ctx, d.Number, x); err != nil {
			return err
		}
	}
	r := clearedOf(p, c, out)
	r.ClosedAt, r.Withheld, r.Burnt = module.Now(ctx), p.SealedDemands+p.SealedLots-p.Revealed, p.Burnt
	err := errors.Join(commitReveal{k}.giveBack(ctx), k.clearing.Remove(ctx), k.progress.Remove(ctx), k.cleared.Set(ctx, r.Number, r))
	if r.Number > maxCleared {
		// All of these: a clearing that failed, or was left out of an export, has a number and no row.
		err = errors.Join(err, k.cleared.Clear(ctx, new(collections.Range[uint64]).EndInclusive(r.Number-maxCleared)))
	}
	if err != nil {
		return err
	}
	return module.Emit(ctx, &auctionv1.EventCleared{Cleared: r})
}

// maxAge bounds what is counted of lost clearings.
const maxAge = 1 << 20

// clearedOf sums up a clearing.
func clearedOf(p *auctionv1.Progress, c *auctionv1.Clearing, out *auction.Outcome) auctionv1.Cleared {
	r := auctionv1.Cleared{
		Number: c.Number, OpenedAt: c.OpenedAt, Demands: uint32(len(c.Demands)), Sellers: uint32(len(c.Sellers)),
		Trades: uint32(len(out.Trades)), Sales: p.Sales, Welfare: out.Welfare, Poster: p.Poster,
	}
	for _, t := range c.Tiers {
		r.Tiers = append(r.Tiers, auctionv1.ClearedTier{Tier: t})
	}
	for i := range c.Demands {
		t := &r.Tiers[wire.KindOf(c, c.Demands[i].Tier)]
		t.Demanded += c.Demands[i].Units
	}
	for i := range c.Sellers {
		for _, l := range c.Sellers[i].Lots {
			r.Tiers[l.Kind].Offered += l.Units
		}
	}
	for i := range out.Trades {
		t, d := &out.Trades[i], &c.Demands[out.Trades[i].Task]
		x := &r.Tiers[t.Fills[0].Kind]
		price := t.Due[t.Fills[0].Kind] / d.Units
		if x.Sold == 0 || price < x.Low {
			x.Low = price
		}
		x.High = max(x.High, price)
		x.Sold += d.Units
		x.Paid += price * d.Units
	}
	return r
}
