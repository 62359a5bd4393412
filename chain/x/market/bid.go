package market

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/core/auction"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// book is the keeper with what matching needs of other modules.
type book struct {
	*Keeper
	registry Registry
	leases   Leases
	games    Games
	seeds    Seeds
}

// stock is all that is on offer at one moment.
type stock struct {
	rules      job.Params
	games      dispute.Rules
	clusters   []cluster
	validators []providerv1.Peer // active ones
}

// cluster is an offer and the peers behind it.
type cluster struct {
	offer     marketv1.Offer
	lead      providerv1.Peer
	providers []providerv1.Peer // active ones
	obstacle  error             // why it takes no orders now
}

// stock reads the offers that were posted below a height.
func (b book) stock(ctx context.Context, below int64) (s stock, err error) {
	if s.rules, err = b.leases.Rules(ctx); err != nil {
		return s, err
	}
	if s.games, err = b.games.Rules(ctx); err != nil {
		return s, err
	}
	validators, err := b.registry.WithRole(ctx, providerv1.ROLE_VALIDATOR)
	if err != nil {
		return s, err
	}
	if s.validators, err = b.active(ctx, validators); err != nil {
		return s, err
	}
	var offers []marketv1.Offer
	err = b.offers.Walk(ctx, nil, func(_ sdk.AccAddress, o marketv1.Offer) (bool, error) {
		if o.Height < below {
			offers = append(offers, o)
		}
		return false, nil
	})
	if err != nil {
		return s, err
	}
	for _, o := range offers {
		c, err := b.cluster(ctx, o)
		if err != nil {
			return s, err
		}
		s.clusters = append(s.clusters, c)
	}
	return s, nil
}

func (b book) cluster(ctx context.Context, o marketv1.Offer) (c cluster, err error) {
	account, err := address.Parse(o.Validator)
	if err != nil {
		return c, err
	}
	c.offer = o
	if c.lead, err = b.registry.Get(ctx, account); err != nil {
		c.obstacle = err // only a genesis file can bring such an offer
		return c, nil
	}
	led, err := b.leases.Led(ctx, o.Validator)
	if err != nil {
		return c, err
	}
	active, err := b.registry.Active(ctx, c.lead)
	switch {
	case err != nil:
		return c, err
	case !active:
		c.obstacle = fmt.Errorf("the validator is jailed, or its stake is below the minimum")
	case led >= int(o.MaxLeases):
		c.obstacle = fmt.Errorf("leads %d leases, as many as it offers", led)
	}
	if c.providers, err = b.registry.Providers(ctx, account); err != nil {
		return c, err
	}
	c.providers, err = b.active(ctx, c.providers)
	return c, err
}

func (b book) active(ctx context.Context, peers []providerv1.Peer) (out []providerv1.Peer, err error) {
	for _, p := range peers {
		ok, err := b.registry.Active(ctx, p)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, p)
		}
	}
	return out, nil
}

// bid is an offer priced for one order.
type bid struct {
	auction.Offer
	fee      uint64 // bps
	quote    job.Quote
	bond     uint64 // behind a unit of the first round, and behind the lead
	deposit  uint64 // locked beside the maximum price, or beside this if there is none
	team     []providerv1.Peer
	obstacle error // nil if the order can be leased to it
}

// wants returns what an order asks of offers; a maximum price of zero stands for
// any price.
func wants(c *job.Conditions) auction.Bid {
	w := c.Bid()
	if w.MaxPrice == 0 {
		w.MaxPrice = math.MaxUint64
	}
	return w
}

// bids prices every offer for an order.
func (s *stock) bids(o *job.Order) []bid {
	out := make([]bid, len(s.clusters))
	w := wants(&o.Conditions)
	for i := range s.clusters {
		c := &s.clusters[i]
		b := s.price(c, o, w.MaxPrice)
		b.Referees = len(s.referees(c.offer.Validator))
		if b.obstacle == nil {
			b.obstacle = s.rules.Suits(o)
		}
		if b.obstacle == nil { // the rules may have changed since it was posted
			b.obstacle = s.rules.Replayable(o, s.games)
		}
		if b.obstacle == nil {
			b.obstacle = c.obstacle
		}
		if free := freeStake(c.lead); b.obstacle == nil && free < b.bond {
			b.obstacle = fmt.Errorf("the validator has %d utally of stake free, leading takes a bond of %d", free, b.bond)
		}
		if b.obstacle == nil {
			b.obstacle = w.Meets(b.Offer)
		}
		out[i] = b
	}
	return out
}

// price puts the team together: of the providers that can put up the bond as
// many of the cheapest as a price of at most limit allows, at least as many as
// the order wants. So nobody can spoil an offer with a price that nobody pays.
func (s *stock) price(c *cluster, o *job.Order, limit uint64) bid {
	p, terms := &o.Problem, &o.Conditions
	b := bid{Offer: auction.Offer{Validator: c.offer.Validator}, fee: uint64(c.offer.FeeBps)}
	team := cheapest(c.providers, p)
	for len(team) > 0 {
		b.quote, b.obstacle = job.NewQuote(p, terms, job.Dearest(parties(team)), b.fee, s.rules.Tariff)
		if b.obstacle == nil {
			// A provider with a long record is audited least, and its bond is highest.
			var bond job.Bond
			bond, b.obstacle = b.quote.Bond(p, terms, &s.rules, 0, terms.Audited(math.MaxUint64))
			b.bond = bond.Amount
		}
		if (b.obstacle != nil || b.quote.Price > limit) && len(team) > terms.MinProviders {
			team = team[:len(team)-1]
			continue
		}
		able := slices.DeleteFunc(slices.Clone(team), func(p providerv1.Peer) bool { return freeStake(p) < b.bond })
		if b.obstacle != nil || len(able) == len(team) {
			break
		}
		if team = able; len(team) == 0 {
			b.obstacle = fmt.Errorf("no provider has the %d utally of stake free that a unit's bond takes", b.bond)
		}
	}
	b.team, b.Price, b.Providers = team, b.quote.Price, len(team)
	price := limit
	if limit == math.MaxUint64 {
		price = b.Price
	}
	var err error
	if b.deposit, err = s.rules.Deposit(price); err != nil && b.obstacle == nil {
		b.obstacle = err
	}
	return b
}

// cheapest returns at most job.MaxParties peers, the cheapest for an order's
// units first.
func cheapest(peers []providerv1.Peer, p *job.Problem) []providerv1.Peer {
	type priced struct {
		providerv1.Peer
		pay uint64
	}
	list := make([]priced, len(peers))
	for i, peer := range peers {
		pay, err := rates(peer).Pay(p.UnitFLOPs(), p.StepBytes*uint64(p.Steps))
		if err != nil {
			pay = math.MaxUint64
		}
		list[i] = priced{peer, pay}
	}
	slices.SortStableFunc(list, func(x, y priced) int { return cmp.Compare(x.pay, y.pay) })
	out := make([]providerv1.Peer, min(len(list), job.MaxParties))
	for i := range out {
		out[i] = list[i].Peer
	}
	return out
}

// referees returns the validators that are independent of a lead.
func (s *stock) referees(lead string) []providerv1.Peer {
	return slices.DeleteFunc(slices.Clone(s.validators), func(v providerv1.Peer) bool { return v.Account == lead })
}

// parties returns peers as leases know them, in account order.
func parties(peers []providerv1.Peer) []job.Party {
	out := make([]job.Party, len(peers))
	for i, p := range peers {
		out[i] = job.Party{Account: p.Account, Key: p.PeerKey, VRF: p.VrfKey, Rates: rates(p)}
	}
	slices.SortFunc(out, func(x, y job.Party) int { return cmp.Compare(x.Account, y.Account) })
	return out
}

func rates(p providerv1.Peer) job.Rates {
	return job.Rates{GFLOP: p.Listing.UnitPrice, GB: p.Listing.BytePrice}
}

func freeStake(p providerv1.Peer) uint64 { return p.Stake - p.Reserved }
