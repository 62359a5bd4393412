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
}

// Foresee asks what an order that asks for auctions would come to at one now. Others may bid until one is held. bid is what it bids
// in secret, as a maximum price in utally; 0: its maximum price.
func Foresee(ctx context.Context, env *role.Env, o *job.Order, bid uint64) (*Outlook, error) {
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
	peers, err := providers(ctx, registry, "")
	if err != nil {
		return nil, err
	}
	demands, sold, err := bidsOf(ctx, q)
	if err != nil {
		return nil, err
	}
	now, err := q.Clearing(ctx, &auctionv1.QueryClearingRequest{})
	if err != nil {
		return nil, fmt.Errorf("ask who could lead: %w", err)
	}
	s := sale{
		params: rules.Params, tiers: r.Params.Tiers, demands: demands, sold: sold, records: map[string]uint64{},
		room: now.Room, referees: now.Referees,
	}
	for i := range peers {
		s.records[peers[i].Account] = peers[i].Record
	}
	return s.outlook(o, terms, bid)
}

// bidsOf reads what orders demand and what is on sale.
func bidsOf(ctx context.Context, q auctionv1.QueryClient) ([]auctionv1.Demand, []auctionv1.Capacity, error) {
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
	return demands, sold, err
}

// sale is what a clearing would be made of.
type sale struct {
	params  auctionv1.Params
	tiers   []providerv1.Tier
	demands []auctionv1.Demand
	sold    []auctionv1.Capacity
	records map[string]uint64 // valid units, by provider

	room     uint64 // the highest price in utally that some validator may lead
	referees uint32 // owners of validators beside a lead's
}

// outlook clears what is bid, with an order beside it. bid is as for Foresee.
func (s *sale) outlook(o *job.Order, t *demand.Terms, bid uint64) (*Outlook, error) {
	c := s.clearing()
	out := &Outlook{Rule: s.params.Rule, Sealed: wire.SealedBids(&s.params), Tier: cmp.Or(o.Conditions.Needs.Tier, c.Tiers[len(c.Tiers)-1])}
	d, err := t.Of(o)
	out.Units = d.Units
	kind := slices.Index(c.Tiers, out.Tier)
	switch {
	case err != nil:
		out.Obstacle = err.Error()
	case kind < 0:
		out.Obstacle = fmt.Sprintf("there is no tier %.40q: the tiers are %s", out.Tier, strings.Join(c.Tiers, ", "))
	}
	if out.Obstacle != "" {
		return out, nil
	}
	out.Bid = (d.Budget - d.Fee) / max(d.Units, 1)
	if out.Sealed {
		out.Deposit = s.params.Deposit
	}
	out.supply(c, kind, s.params.LotUnits)
	if bid > 0 {
		out.secret(o, bid, t)
	}
	if rules, err := wire.ClearingRules(&s.params); err == nil && out.Obstacle == "" {
		id, others := o.ID(), 0
		for _, d := range c.Demands {
			if wire.KindOf(c, d.Tier) == kind && !bytes.Equal(d.Order, id[:]) {
				others++
			}
		}
		out.Obstacle = thin(rules.Rule, out.Tier, others+1, out.Sellers)
	}
	if out.Counts > 0 {
		out.Least = leastPrice(o, out.Counts*out.Units, t)
		if d.Budget-d.Fee < out.Counts*out.Units {
			out.Obstacle = fmt.Sprintf("it bids %d utally for a unit, and who sells enough of tier %s asks %d, which counts as %d: a maxPrice of %d utally would win", out.Bid, out.Tier, out.Ask, out.Counts, out.Least)
		}
	}
	switch {
	case d.Budget > s.room:
		out.Obstacle = fmt.Sprintf("no validator may lead an order of %v now, and the largest that one may lead is of %v: lower maxPrice, or wait until leases end", consume.Amount(d.Budget), consume.Amount(s.room))
	case o.Conditions.Bid().Referees > int(s.referees):
		out.Obstacle = fmt.Sprintf("it wants %d validators of other owners than its lead's, and there are %d", o.Conditions.Bid().Referees, s.referees)
	}
	if wait := wire.LeastWait(&s.params); o.Conditions.Expires < wait {
		out.Obstacle = fmt.Sprintf("it expires after %d s, and has to wait for %d s at least: write expires", o.Conditions.Expires/1000, (wait+999)/1000)
	}
	if out.Obstacle != "" || out.Sealed {
		return out, nil
	}
	id := o.ID()
	own := auctionv1.Demand{Order: id[:], Tier: o.Conditions.Needs.Tier, Units: d.Units, Budget: d.Budget, Fee: d.Fee}
	c.Demands = append(slices.DeleteFunc(c.Demands, func(x auctionv1.Demand) bool { return bytes.Equal(x.Order, id[:]) }), own)
	slices.SortFunc(c.Demands, func(x, y auctionv1.Demand) int { return bytes.Compare(x.Order, y.Order) })
	unit, err := out.clear(c, id)
	if err != nil || unit == 0 {
		return out, err
	}
	out.Price, err = priceAt(o, unit, t)
	return out, err
}

// secret enters what an order bids in secret.
func (o *Outlook) secret(of *job.Order, bid uint64, t *demand.Terms) {
	if !o.Sealed {
		o.Obstacle = fmt.Sprintf("it has a bid, and by rule %s bids are open, so that its maxPrice is the bid: leave the line bid out, and lower maxPrice", o.Rule)
		return
	}
	x := *of
	x.Conditions.MaxPrice = bid
	d, err := t.Of(&x)
	if err != nil {
		o.Obstacle = fmt.Sprintf("a bid of %d utally: %v", bid, err)
		return
	}
	o.Bid = max((d.Budget-d.Fee)/max(d.Units, 1), 1)
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

// supply enters what is on sale of the order's tier, and says what keeps the order from it.
func (o *Outlook) supply(c *auctionv1.Clearing, kind int, lotUnits uint64) {
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
	o.Sellers = len(lots)
	switch {
	case o.Sellers == 0:
		o.Obstacle = fmt.Sprintf("nobody sells tier %s at auctions now: the order waits for sellers until it expires, and all is refunded then", o.Tier)
	case o.Sealed && o.Units > lotUnits:
		o.Obstacle = fmt.Sprintf("it demands %d units: by rule %s one provider computes all of it, and at most %d are sold: divide it", o.Units, o.Rule, lotUnits)
	case o.Sealed:
	case o.Offered < o.Units:
		o.Obstacle = fmt.Sprintf("it demands %d units of tier %s, all or none, and %d are on sale", o.Units, o.Tier, o.Offered)
	default:
		slices.SortFunc(lots, func(x, y lot) int { return cmp.Compare(x.score, y.score) })
		for i, left := 0, o.Units; left > 0; i++ {
			o.Ask, o.Counts = max(o.Ask, lots[i].ask), lots[i].score
			left -= min(left, lots[i].units)
		}
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

// clear returns what the order would pay for a unit, or 0 if others win all that it could have.
func (o *Outlook) clear(c *auctionv1.Clearing, id [32]byte) (uint64, error) {
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
			return max(t.Price, t.Due[t.Fills[0].Kind]) / o.Units, nil
		}
	}
	o.Obstacle = "others bid more for what is on sale: it waits, and counts for more with each clearing that it loses"
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
	if dear := o.Dear(); dear != "" {
		fmt.Fprintf(w, "  WARNING   %s\n", dear)
	}
}

// Dear says that an order would pay many times what it needs to, if it would.
func (o *Outlook) Dear() string {
	if o.Rule != auction.Midpoint.String() || o.Price <= dear*o.Least {
		return ""
	}
	return fmt.Sprintf("it would pay %v, and a maxPrice of %v would win as well: by rule %s half of what maxPrice leaves above the asks goes to the providers",
		consume.Amount(o.Price), consume.Amount(o.Least), o.Rule)
}

// dear is from how many times the least price on a buyer is warned.
const dear = 2
