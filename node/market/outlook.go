package market

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"

	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/auction"
	"github.com/tally-network/tally/core/demand"
	"github.com/tally-network/tally/core/job"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/seals"
)

// Outlook is what an order would come to at an auction of what is on sale and wanted now. A unit is of 10⁹ floating-point operations,
// of which a byte that is moved counts as some.
type Outlook struct {
	Rule     string `json:"rule"`
	Sealed   bool   `json:"sealed,omitempty"` // so others' prices are not known
	Tier     string `json:"tier"`
	Units    uint64 `json:"units"`                    // that it demands
	Bid      uint64 `json:"bid_utally"`               // for a unit: the most that its maximum price pays providers
	Offered  uint64 `json:"offered_units"`            // of its tier
	Sellers  int    `json:"sellers"`                  // likewise
	Ask      uint64 `json:"ask_utally"`               // for a unit: the dearest of the cheapest sellers that have enough; 0 if they have not, or it is not known
	Counts   uint64 `json:"counts_utally"`            // what that counts as against a bid: more, if the seller has shown little
	Least    uint64 `json:"least_utally"`             // the lowest maximum price that bids as much; 0 if there is none, or it is not known
	Price    uint64 `json:"price_utally"`             // that it would pay at most, all parts together; 0 if it would not win, or it is not known
	Deposit  uint64 `json:"deposit_utally,omitempty"` // of a sealed bid, until it is revealed
	Obstacle string `json:"obstacle,omitempty"`
	Dear     string `json:"dear,omitempty"` // that a lower maximum price would win as well, and for how much less
}

// Foresee asks what an order that asks for auctions would come to at one now. Others may bid until one is held. bid is what it bids
// in secret, as a maximum price in utally; 0: its maximum price.
func Foresee(ctx context.Context, env *role.Env, o *job.Order, bid uint64) (*Outlook, error) {
	s, err := lookAtSale(ctx, env)
	if err != nil {
		return nil, err
	}
	return s.outlook(o, bid)
}

// lookAtSale reads what a clearing would be made of.
func lookAtSale(ctx context.Context, env *role.Env) (*sale, error) {
	conn := env.Chain.Conn
	q := auctionv1.NewQueryClient(conn)
	rules, err := q.Params(ctx, &auctionv1.QueryParamsRequest{})
	if err != nil {
		return nil, fmt.Errorf("ask for the rules of auctions: %w", err)
	}
	terms, err := seals.TermsOf(ctx, conn)
	if err != nil {
		return nil, err
	}
	registry := providerv1.NewQueryClient(conn)
	r, err := registry.Params(ctx, &providerv1.QueryParamsRequest{})
	if err != nil {
		return nil, fmt.Errorf("ask for the tiers: %w", err)
	}
	b := Book{Rules: r.Params, Now: env.Chain.Head().Time}
	if b.Peers, err = providers(ctx, registry, ""); err != nil {
		return nil, err
	}
	demands, sold, err := bidsOf(ctx, q, b.sellers())
	if err != nil {
		return nil, err
	}
	now, err := q.Clearing(ctx, &auctionv1.QueryClearingRequest{})
	if err != nil {
		return nil, fmt.Errorf("ask who could lead: %w", err)
	}
	s := &sale{
		params: rules.Params, terms: terms, tiers: r.Params.Tiers, demands: demands, sold: sold, records: map[string]uint64{},
		room: now.Room, referees: now.Referees,
	}
	for i := range b.Peers {
		s.records[b.Peers[i].Account] = b.Peers[i].Record
	}
	return s, nil
}

// sellers returns whether what somebody sells is on sale now.
func (b *Book) sellers() func(*auctionv1.Capacity) bool {
	able := map[string]bool{}
	for i := range b.Peers {
		able[b.Peers[i].Account] = wire.Unable(&b.Peers[i], &b.Rules, b.Now) == ""
	}
	return func(c *auctionv1.Capacity) bool { return able[c.Provider] && (c.Ends == 0 || c.Ends > b.Now) }
}

// bidsOf reads what orders demand, and what is on sale of sellers that fit.
func bidsOf(ctx context.Context, q auctionv1.QueryClient, fits func(*auctionv1.Capacity) bool) ([]auctionv1.Demand, []auctionv1.Capacity, error) {
	demands, err := client.Pages("demands", Most, func(p *query.PageRequest) ([]auctionv1.Demand, *query.PageResponse, error) {
		r, err := q.Demands(ctx, &auctionv1.QueryDemandsRequest{Pagination: p})
		return r.GetDemands(), r.GetPagination(), err
	})
	if err != nil {
		return nil, nil, err
	}
	sold, err := client.Pages("capacities", Most, func(p *query.PageRequest) ([]auctionv1.Capacity, *query.PageResponse, error) {
		r, err := q.Capacities(ctx, &auctionv1.QueryCapacitiesRequest{Pagination: p})
		return r.GetCapacities(), r.GetPagination(), err
	})
	return demands, slices.DeleteFunc(sold, func(c auctionv1.Capacity) bool { return !fits(&c) }), err
}

// sale is what a clearing would be made of.
type sale struct {
	params  auctionv1.Params
	terms   *demand.Terms
	tiers   []providerv1.Tier
	demands []auctionv1.Demand
	sold    []auctionv1.Capacity
	records map[string]uint64 // valid units, by provider

	room     uint64 // the highest price in utally that some validator may lead
	referees uint32 // owners of validators beside a lead's
}

// outlook clears what is bid, with an order beside it. bid is as for Foresee.
func (s *sale) outlook(o *job.Order, bid uint64) (*Outlook, error) {
	c := s.clearing()
	out := &Outlook{Rule: s.params.Rule, Sealed: wire.SealedBids(&s.params), Tier: cmp.Or(o.Conditions.Needs.Tier, c.Tiers[len(c.Tiers)-1])}
	d, err := s.terms.Of(o)
	out.Units = d.Units
	kind := slices.Index(c.Tiers, out.Tier)
	switch {
	case err != nil:
		out.Obstacle = err.Error()
		return out, nil
	case kind < 0:
		out.Obstacle = fmt.Sprintf("there is no tier %.40q: the tiers are %s", out.Tier, strings.Join(c.Tiers, ", "))
		return out, nil
	}
	if out.Sealed {
		out.Deposit = s.params.Deposit
	}
	out.supply(c, kind)
	if out.Counts > 0 {
		out.Least = leastPrice(o, out.Counts*out.Units, s.terms)
	}
	// The gravest obstacle is told: what cannot be posted, what can never win, what cannot win now, what bids too little.
	out.Obstacle = cmp.Or(out.secret(o, &d, bid, s.terms), s.never(o, out), s.notNow(o, &d, out), s.scarce(o, c, kind, out), out.tooLow())
	if out.Obstacle != "" || out.Sealed {
		return out, nil
	}
	if out.Price, err = s.price(c, o, &d); err != nil {
		return out, err
	}
	if out.Price == 0 {
		out.Obstacle = "others bid more for what is on sale: it waits, and counts for more with each clearing that it loses"
	}
	return out, s.cheaper(c, o, out)
}

// secret enters what an order bids in secret, or without that its maximum price. It says why it may not.
func (o *Outlook) secret(of *job.Order, d *demand.Demand, bid uint64, t *demand.Terms) string {
	o.Bid = (d.Budget - d.Fee) / max(d.Units, 1)
	if bid == 0 {
		return ""
	}
	if !o.Sealed {
		return fmt.Sprintf("by rule %s bids are open, so that maxPrice is the bid: leave the line bid out, and lower maxPrice", o.Rule)
	}
	x := *of
	x.Conditions.MaxPrice = bid
	secret, err := t.Of(&x)
	if err != nil {
		o.Bid = 0
		return fmt.Sprintf("a bid of %v: %v", consume.Amount(bid), err)
	}
	o.Bid = max((secret.Budget-secret.Fee)/max(secret.Units, 1), 1)
	return ""
}

// never says why an order wins at no auction, whoever bids.
func (s *sale) never(o *job.Order, out *Outlook) string {
	if out.Sealed && out.Units > s.params.LotUnits {
		return fmt.Sprintf("it demands %d units: by rule %s one provider computes all of it, and at most %d are sold: divide it", out.Units, out.Rule, s.params.LotUnits)
	}
	if wait := wire.LeastWait(&s.params); o.Conditions.Expires < wait {
		return fmt.Sprintf("it expires after %d s, and has to wait for %d s at least: write expires", o.Conditions.Expires/1000, (wait+999)/1000)
	}
	return ""
}

// notNow says why an order takes part in no auction now, whatever is on sale.
func (s *sale) notNow(o *job.Order, d *demand.Demand, out *Outlook) string {
	switch wants := o.Conditions.Bid().Referees; {
	case s.room == 0:
		return fmt.Sprintf("no validator offers now to lead an order of auctions for a fee of at most %d bps: it waits for one", s.params.FeeBps)
	case d.Budget > s.room:
		return fmt.Sprintf("no validator may lead an order of %v now, and the largest may be of %v: lower maxPrice, or wait", consume.Amount(d.Budget), consume.Amount(s.room))
	case wants > int(s.referees):
		return fmt.Sprintf("it wants %d validators of other owners than its lead's, and there are %d", wants, s.referees)
	}
	return ""
}

// scarce says why what is on sale does not suffice for an order.
func (s *sale) scarce(o *job.Order, c *auctionv1.Clearing, kind int, out *Outlook) string {
	switch {
	case out.Sellers == 0:
		return fmt.Sprintf("nobody sells tier %s at auctions now: the order waits for sellers until it expires, and all is refunded then", out.Tier)
	case !out.Sealed && out.Offered < out.Units:
		return fmt.Sprintf("it demands %d units of tier %s, all or none, and %d are on sale", out.Units, out.Tier, out.Offered)
	}
	rules, err := wire.ClearingRules(&s.params)
	if err != nil {
		return err.Error()
	}
	id, others := o.ID(), 0
	for _, d := range c.Demands {
		if wire.KindOf(c, d.Tier) == kind && !bytes.Equal(d.Order, id[:]) {
			others++
		}
	}
	return thin(rules.Rule, out.Tier, others+1, out.Sellers)
}

// tooLow says what an order has to bid for what is asked.
func (o *Outlook) tooLow() string {
	if o.Bid >= o.Counts {
		return ""
	}
	return fmt.Sprintf("it bids %d utally for a unit, and who sells enough of tier %s asks %d, which counts as %d: a maxPrice of %d utally would win", o.Bid, o.Tier, o.Ask, o.Counts, o.Least)
}

// price returns what an order would pay at most in a clearing, or 0 if others win all that it could have.
func (s *sale) price(c *auctionv1.Clearing, o *job.Order, d *demand.Demand) (uint64, error) {
	id := o.ID()
	own := auctionv1.Demand{Order: id[:], Tier: o.Conditions.Needs.Tier, Units: d.Units, Budget: d.Budget, Fee: d.Fee}
	with := *c
	with.Demands = append(slices.DeleteFunc(slices.Clone(c.Demands), func(x auctionv1.Demand) bool { return bytes.Equal(x.Order, id[:]) }), own)
	slices.SortFunc(with.Demands, func(x, y auctionv1.Demand) int { return bytes.Compare(x.Order, y.Order) })
	unit, err := clear(&with, id, d.Units)
	if err != nil || unit == 0 {
		return 0, err
	}
	return priceAt(o, unit, s.terms)
}

// dear is from how many times the price that would do a buyer is warned.
const dear = 2

// cheaper warns of an order that pays many times what would do, since by rule midpoint a buyer pays half of what its maximum price
// leaves above the asks.
func (s *sale) cheaper(c *auctionv1.Clearing, o *job.Order, out *Outlook) error {
	if s.params.Rule != auction.Midpoint.String() || out.Price <= dear*out.Least {
		return nil
	}
	x := *o
	x.Conditions.MaxPrice = out.Least
	d, err := s.terms.Of(&x)
	if err != nil {
		return err
	}
	if price, err := s.price(c, &x, &d); err != nil || price == 0 {
		return err // others bid more than that
	}
	out.Dear = fmt.Sprintf("it would pay %v, and a maxPrice of %v would win as well: half of what is above the asks goes to providers", consume.Amount(out.Price), consume.Amount(out.Least))
	return nil
}

// clearing returns one of what is bid, in the slowest tiers if there are more than an auction has.
func (s *sale) clearing() *auctionv1.Clearing {
	c := &auctionv1.Clearing{Params: s.params, Demands: slices.Clone(s.demands)}
	for _, t := range s.tiers[max(len(s.tiers)-auction.Kinds, 0):] {
		c.Tiers = append(c.Tiers, t.Label)
	}
	for _, x := range s.sold {
		account, err := address.Parse(x.Provider)
		if err != nil {
			continue // no node has stored it
		}
		y := auctionv1.Seller{Provider: x.Provider, Account: account, Handicap: auction.Handicap(s.params.DoubtBps, s.records[x.Provider])}
		for _, l := range x.Lots {
			units, _ := taken(&s.params, &l)
			if kind := slices.Index(c.Tiers, l.Tier); kind >= 0 && units > 0 {
				y.Lots = append(y.Lots, auctionv1.SoldLot{Kind: uint32(kind), Units: units, Ask: l.Ask})
			}
		}
		if len(y.Lots) > 0 {
			c.Sellers = append(c.Sellers, y)
		}
	}
	slices.SortFunc(c.Sellers, func(x, y auctionv1.Seller) int { return bytes.Compare(x.Account, y.Account) })
	return c
}

// supply enters what is on sale of the order's tier.
func (o *Outlook) supply(c *auctionv1.Clearing, kind int) {
	type lot struct{ units, ask, score uint64 }
	var lots []lot
	for _, s := range c.Sellers {
		for _, l := range s.Lots {
			if int(l.Kind) == kind {
				lots = append(lots, lot{l.Units, l.Ask, auction.Score(l.Ask, s.Handicap)})
				o.Offered += l.Units
			}
		}
	}
	if o.Sellers = len(lots); o.Sealed || o.Offered < o.Units {
		return // asks are not known, or do not suffice
	}
	slices.SortFunc(lots, func(x, y lot) int { return cmp.Compare(x.score, y.score) })
	for i, left := 0, o.Units; left > 0; i++ {
		o.Ask, o.Counts = max(o.Ask, lots[i].ask), lots[i].score
		left -= min(left, lots[i].units)
	}
}

// leastPrice returns the lowest maximum price of which so much is left for providers, or 0 if there is none.
func leastPrice(o *job.Order, net uint64, t *demand.Terms) uint64 {
	enough := func(price uint64) bool {
		x := *o
		x.Conditions.MaxPrice = price
		d, err := t.Of(&x)
		return err == nil && d.Budget-d.Fee >= net
	}
	high := max(net, 1)
	for !enough(high) {
		if high *= 2; high > auction.MaxBudget {
			return 0
		}
	}
	low := high / 2
	return low + uint64(sort.Search(int(high-low), func(i int) bool { return enough(low + uint64(i)) }))
}

// clear returns what an order of so many units would pay for each, or 0 if others win all that it could have.
func clear(c *auctionv1.Clearing, id [32]byte, units uint64) (uint64, error) {
	b, rules, err := wire.BookOf(c)
	if err != nil {
		return 0, err
	}
	cleared, _, err := auction.Fallback(b, rules)
	if err != nil {
		return 0, err
	}
	for i := range cleared.Trades {
		t := &cleared.Trades[i]
		if b.Tasks[t.Task].ID == id {
			return max(t.Price, t.Due[t.Fills[0].Kind]) / units, nil
		}
	}
	return 0, nil
}

// priceAt returns what an order costs that pays providers so much for a unit.
func priceAt(o *job.Order, unit uint64, t *demand.Terms) (uint64, error) {
	r, err := demand.Rates(unit, t.Balance)
	if err != nil {
		return 0, err
	}
	q, err := job.NewQuote(&o.Problem, &o.Conditions, r, t.FeeBps, t.Rules.Tariff)
	return q.Price, err
}

// Tell says to people what an order would come to at an auction.
func (o *Outlook) Tell(w io.Writer) {
	if o.Bid == 0 {
		fmt.Fprintf(w, "  not possible: %s\n", o.Obstacle)
		return
	}
	sellers := fmt.Sprintf("%d providers", o.Sellers)
	if o.Sellers == 1 {
		sellers = "1 provider"
	}
	fmt.Fprintf(w, "  demands   %d units of tier %s at the auction, for at most %d utally each; a unit is 10⁹ operations, or moving some bytes\n", o.Units, o.Tier, o.Bid)
	fmt.Fprintf(w, "  on sale   %d units by %s\n", o.Offered, sellers)
	if o.Ask > 0 {
		fmt.Fprintf(w, "  asked     %d utally for a unit, by who sells enough, which counts as %d: a maxPrice of %v bids as much\n", o.Ask, o.Counts, consume.Amount(o.Least))
	}
	if o.Deposit > 0 {
		fmt.Fprintf(w, "  deposit   %v besides, for the sealed bid: it comes back once that is revealed, and is burnt if it is not\n", consume.Amount(o.Deposit))
	}
	switch {
	case o.Obstacle != "":
		fmt.Fprintf(w, "  WARNING   %s\n", o.Obstacle)
	case o.Sealed:
		fmt.Fprintln(w, "  price     not known: bids are sealed. What is too low waits for the next clearing")
	default:
		fmt.Fprintf(w, "  price     at most %v if it were held now, by rule %s\n", consume.Amount(o.Price), o.Rule)
	}
	if o.Dear != "" {
		fmt.Fprintf(w, "  WARNING   %s\n", o.Dear)
	}
}
