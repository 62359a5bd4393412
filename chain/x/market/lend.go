package market

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"cosmossdk.io/collections"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/book"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/team"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// lender begins the lease of an order, with providers and what they have at stake for it, for a fee of at most so many bps, at
// rates that the order pays.
type lender = func(ctx context.Context, order canon.Hash, sellers []providerv1.Candidate, bonds []job.Share, feeBps uint32, pays job.Rates) (able bool, err error)

// Lends returns lend, which begins the lease of an open order with providers who sold to it. It takes the offer with the
// smallest fee, at most feeBps, and reserves the bonds. able is false if no provider can take a unit. What the order pays
// above its cost is burnt. room reports whether the block has time for another.
func (m Module) Lends(ctx context.Context) (lend lender, room func() bool, err error) {
	s, err := m.matcher.leadStock(ctx)
	return func(ctx context.Context, order canon.Hash, sellers []providerv1.Candidate, bonds []job.Share, feeBps uint32, pays job.Rates) (bool, error) {
		return m.matcher.lend(ctx, &s, order, &sale{sellers, bonds, feeBps, pays})
	}, func() bool { return s.work < maxWeighed }, err
}

// Posted returns the number of an order in the book, and who posted it.
func (m Module) Posted(ctx context.Context, order canon.Hash) (number uint64, consumer string, err error) {
	o, p, err := m.matcher.Order(ctx, order)
	return p.Number, o.Consumer, err
}

// sale is what a clearing has sold to an order.
type sale struct {
	sellers []providerv1.Candidate
	bonds   []job.Share // of these, which the lease reserves
	feeBps  uint32      // at most
	pays    job.Rates   // of the order
}

func (m matcher) lend(ctx context.Context, s *stock, id canon.Hash, sold *sale) (able bool, err error) {
	o, p, err := m.Order(ctx, id)
	if err != nil {
		return true, err
	}
	if p.Status != marketv1.STATUS_OPEN || p.ExpiresAt <= module.Now(ctx) {
		return true, fmt.Errorf("the order is %s, and waits until %s", wire.NameOf(p.Status), wire.Moment(p.ExpiresAt))
	}
	if err := cmp.Or(s.rules.Suits(&o), s.rules.Replayable(&o, s.games)); err != nil { // the rules may have changed
		return true, err
	}
	t := make(members, len(sold.sellers))
	for i := range sold.sellers {
		if t[i].Candidate = &sold.sellers[i]; s.owners[ownerOf(t[i].Candidate)] {
			t[i].judge = ownerOf(t[i].Candidate)
		}
	}
	t = t.sum()
	terms := team.Terms{Order: &o, FeeBps: uint64(sold.feeBps), Rules: &s.rules} // at most
	q, err := terms.At(t[len(t)-1].dearest)
	if err != nil {
		return true, err
	}
	if t = s.without(t, func(p *member) bool { return p.Free < q.Bond }); len(t) == 0 {
		return false, fmt.Errorf("none of those who sold it capacity has the %d utally of stake free that a unit's bond takes", q.Bond)
	}
	x, able, err := s.leading(&o, t, &q, sold.feeBps)
	if err != nil {
		return able, err
	}
	most, err := job.NewQuote(&o.Problem, &o.Conditions, sold.pays, x.fee, s.rules.Tariff)
	if err != nil {
		return true, err
	}
	x.pays, x.sold = most.Price, slices.DeleteFunc(slices.Clone(sold.bonds), func(s job.Share) bool {
		return !slices.ContainsFunc(x.team, func(p member) bool { return p.Account == s.Account })
	})
	s.work += beginning * (len(x.team) + len(s.validators))
	if err := m.begin(ctx, s, x, id, &o, p); err != nil {
		return true, err
	}
	return true, m.refresh(ctx, s, x.Validator)
}

// Referees returns how many owners of active validators an order has beside the lead's, at most.
func (m Module) Referees(ctx context.Context) (int, error) {
	s, err := m.matcher.rules(ctx)
	return max(len(s.owners)-1, 0), err
}

// Leading returns the highest price, in utally, of an order that some validator may lead now for a fee of at most feeBps, and how
// many owners of active validators there are beside a lead's, at most.
func (m Module) Leading(ctx context.Context, feeBps uint32) (most uint64, referees int, err error) {
	s, err := m.matcher.leadStock(ctx)
	for i := range s.clusters {
		if c := &s.clusters[i]; c.obstacle == nil && c.offer.FeeBps <= feeBps {
			most = max(most, c.room)
		}
	}
	return most, max(len(s.owners)-1, 0), err
}

// Auctioned returns how many open orders ask for auctions.
func (m Module) Auctioned(ctx context.Context) (n int, err error) {
	err = m.matcher.byStatus.Walk(ctx, opens(), func(at collections.Pair[int32, uint64]) (bool, error) {
		asks, err := m.matcher.auctioned(ctx, at.K2())
		if asks {
			n++
		}
		return false, err
	})
	return n, err
}

// Asks reports whether the order of a number is this one, and open, and asks for auctions.
func (m Module) Asks(ctx context.Context, number uint64, order canon.Hash) (bool, error) {
	id, err := m.matcher.byNumber(ctx, number)
	if err != nil || id != order {
		return false, err
	}
	return m.matcher.auctioned(ctx, number)
}

func (k *Keeper) auctioned(ctx context.Context, number uint64) (bool, error) {
	id, err := k.byNumber(ctx, number)
	if err != nil {
		return false, err
	}
	p, err := k.postings.Get(ctx, id[:])
	return p.Status == marketv1.STATUS_OPEN && p.Auction, err
}

// leadStock is the offers of validators that could lead a lease, without the providers behind them.
func (m matcher) leadStock(ctx context.Context) (s stock, err error) {
	if s, err = m.rules(ctx); err != nil {
		return s, err
	}
	looked, height := 0, sdk.UnwrapSDKContext(ctx).BlockHeight()
	look := func(lead sdk.AccAddress) (bool, error) {
		if looked++; looked > maxLeads || len(s.clusters) == book.MaxOffers {
			return true, nil
		}
		o, err := m.offers.Get(ctx, lead)
		if errors.Is(err, collections.ErrNotFound) {
			return false, nil
		}
		if err == nil {
			_, err = m.enterLead(ctx, &s, lead, o, height)
		}
		return false, err
	}
	from := turnOf(ctx)
	if err := m.registry.Leads(ctx, from, nil, look); err != nil {
		return s, err
	}
	return s, m.registry.Leads(ctx, nil, from, look)
}

// leading returns the cheapest offer under which an order can be leased to a team, with what it then costs. It is not able to if
// the owner of each of the team has to judge the order, and so may not compute it.
func (s *stock) leading(o *job.Order, t members, q *team.Price, feeBps uint32) (x bid, able bool, err error) {
	why := errors.New("no validator offers to lead")
	var offers []book.Offer
	able = true
	w := wants(&o.Conditions)
	for i := range s.clusters {
		c := &s.clusters[i]
		computing := len(s.computing(t, c, o))
		x := book.Offer{Validator: c.offer.Validator, Price: uint64(c.offer.FeeBps), Since: c.offer.Since, Providers: max(computing, 1), Referees: c.referees}
		err := cmp.Or(c.obstacle, c.full, c.leads(q.Quote.Price, q.Bond), w.Meets(x))
		if err == nil && c.offer.FeeBps > feeBps {
			err = fmt.Errorf("it takes a fee of %d bps, leases of auctions pay at most %d", c.offer.FeeBps, feeBps)
		}
		if err != nil {
			why = fmt.Errorf("%s: %w", c.offer.Validator, err)
			continue
		}
		if computing == 0 {
			able, why = false, fmt.Errorf("%s: who sold it capacity is of owners that all have to judge it", c.offer.Validator)
			continue
		}
		offers = append(offers, x)
	}
	best, ok := book.Best(w, offers)
	if !ok {
		return bid{}, able, why
	}
	i := slices.IndexFunc(s.clusters, func(c cluster) bool { return c.offer.Validator == best.Validator })
	c := &s.clusters[i]
	return bid{Offer: best, owner: ownerOf(&c.lead), fee: uint64(c.offer.FeeBps), quote: q.Quote, bond: q.Bond, team: s.computing(t, c, o)}, true, nil
}

// enterLead enters an offer that was posted below a height, without the providers behind it, unless it has ended.
func (m matcher) enterLead(ctx context.Context, s *stock, lead sdk.AccAddress, o marketv1.Offer, below int64) (entered bool, err error) {
	if o.Height >= below || ended(&o, module.Now(ctx)) {
		return false, nil
	}
	c := cluster{offer: o, referees: len(s.owners)}
	if err := m.readLead(ctx, s, &c, lead); err != nil {
		return false, err
	}
	if s.owners[ownerOf(&c.lead)] {
		c.referees-- // not its own
	}
	s.clusters = append(s.clusters, c)
	return true, nil
}
