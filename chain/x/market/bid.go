package market

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/tally-network/tally/core/book"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/match"
	"github.com/tally-network/tally/core/team"
)

// bid is an offer priced for one order.
type bid struct {
	book.Offer
	owner    string // of the lead
	fee      uint64 // bps
	quote    job.Quote
	bond     uint64      // behind a unit of the first round, and behind the lead
	pays     uint64      // utally that the order pays at least; what providers, referees and fees do not get of it is burnt
	deposit  uint64      // locked beside the maximum price, or beside this if there is none
	sold     []job.Share // stake behind what these have sold at an auction
	team     members
	misses   []match.Miss // of providers behind the offer, or for replicas behind all offers
	obstacle error        // nil if the order can be leased to it
}

// ownedBy reports whether an account is all of a team, or owns it.
func (t members) ownedBy(account string) bool {
	others := func(p member) bool { return p.Account != account && ownerOf(p.Candidate) != account }
	return len(t) > 0 && !slices.ContainsFunc(t, others)
}

// wants returns what an order asks of offers; a maximum price of zero stands for
// any price.
func wants(c *job.Conditions) book.Bid {
	w := c.Bid()
	if w.MaxPrice == 0 {
		w.MaxPrice = math.MaxUint64
	}
	return w
}

// bids prices the offers for an order: those that nothing keeps from it whatever they cost or,
// for people, who compare, all of them.
func (s *stock) bids(o *job.Order, all bool) (out []bid) {
	unfit := s.rules.Suits(o)
	if unfit == nil { // the rules may have changed since it was posted
		unfit = s.rules.Replayable(o, s.games)
	}
	needs, err := o.Conditions.Needs.Under(s.tiers)
	unfit = cmp.Or(unfit, err)
	w := wants(&o.Conditions)
	var common fitting // of an order with replicas: they are the same for all offers, so they are ranked once
	for i := range s.clusters {
		c := &s.clusters[i]
		s.work++
		if !all && (unfit != nil || s.barred(c, &w)) {
			continue
		}
		fit := common
		switch {
		case o.Conditions.Replicas == 0:
			fit = s.fit(s.rank(&o.Problem, s.clusters[i:i+1]), &needs)
		case common.team == nil:
			common = s.fit(s.rank(&o.Problem, s.clusters), &needs)
			fit = common
		}
		b := s.price(c, o, s.computing(fit.team, c, o), w.MaxPrice)
		b.Referees, b.misses = c.referees, fit.lack.Misses()
		b.obstacle = cmp.Or(s.powers.unread(&needs), b.obstacle, unfit, c.obstacle, c.leads(b.quote.Price, b.bond), fit.because(w.Meets(b.Offer), b.Providers < w.Providers), s.suffices(b.team, o), c.full)
		out = append(out, b)
	}
	return out
}

// leads returns an error if the lead cannot put up a bond, or may not lead what has this price.
func (c *cluster) leads(price, bond uint64) error {
	switch {
	case c.lead.Free < bond:
		return fmt.Errorf("the validator has %d utally of stake free, leading takes a bond of %d", c.lead.Free, bond)
	case c.room < price:
		return fmt.Errorf("the validator may lead work of %d utally more, for its stake and how it has led: this costs %d", c.room, price)
	}
	return nil
}

// barred reports whether an offer cannot meet what an order wants, whatever it costs.
func (s *stock) barred(c *cluster, w *book.Bid) bool {
	return c.obstacle != nil || c.full != nil || c.lead.Free < s.rules.MinBond || c.referees < w.Referees ||
		w.Validator != "" && w.Validator != c.offer.Validator
}

// price puts the team together: of the providers that can put up the bond as
// many of the cheapest as a price of at most limit allows, at least as many as
// the order wants. So nobody can spoil an offer with a price that nobody pays.
func (s *stock) price(c *cluster, o *job.Order, ranked members, limit uint64) bid {
	b := bid{Offer: book.Offer{Validator: c.offer.Validator, Since: c.offer.Since}, owner: ownerOf(&c.lead), fee: uint64(c.offer.FeeBps)}
	able := ranked[:min(len(ranked), job.MaxParties)]
	for len(able) > 0 { // twice at most: fewer providers never make the bond larger
		able = s.afford(&b, able, o, limit)
		fit := s.without(able, func(p *member) bool { return p.Free < b.bond })
		if b.obstacle != nil || len(fit) == len(able) {
			break
		}
		if able = fit; len(able) == 0 {
			b.obstacle = fmt.Errorf("no provider has the %d utally of stake free that a unit's bond takes", b.bond)
		}
	}
	if most := o.Conditions.Needs.Most; most > 0 && len(able) > most && b.obstacle == nil { // each can put up what is less
		able = able[:most]
		s.quote(&b, o, able[most-1].dearest)
	}
	b.team, b.Price, b.Providers = able, b.quote.Price, len(able)
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

// afford prices an order for the team that a price of at most limit pays.
func (s *stock) afford(b *bid, t members, o *job.Order, limit uint64) members {
	terms := s.terms(b, o)
	n, p, err := terms.Afford(len(t), func(n int) job.Rates { return t[n-1].dearest }, limit)
	s.priced(b, terms, p, err)
	return t[:n]
}

// quote prices an order at the rates of the dearest of a team.
func (s *stock) quote(b *bid, o *job.Order, dearest job.Rates) {
	terms := s.terms(b, o)
	p, err := terms.At(dearest)
	s.priced(b, terms, p, err)
}

func (s *stock) terms(b *bid, o *job.Order) *team.Terms {
	return &team.Terms{Order: o, FeeBps: b.fee, Rules: &s.rules}
}

func (s *stock) priced(b *bid, t *team.Terms, p team.Price, err error) {
	s.work += t.Quotes
	b.quote, b.bond, b.obstacle = p.Quote, p.Bond, err
}
