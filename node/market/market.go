// Package market is the book as people look at it: what is offered and wanted, how deep the book is, and
// what was paid of late.
//
// Call [Look] for a [View] of the market as a node tells it, and [Cost] for what an order file would cost now.
//
// Invariants: a view is read only from lists that everybody can ask for, and from at most [Most] members of each; offers
// are sorted as for an order that they would cost nothing but their asks.
//
// Source: docs/spec/market.md.
package market

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/cosmos/gogoproto/grpc"

	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/job"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	blockv1 "github.com/tally-network/tally/gen/tally/block/v1"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/node/client"
)

// Most is how many members of a list are read.
const Most = 10_000

// View is the market at one moment. Prices are in utally.
type View struct {
	Offers []Offer          `json:"offers"`      // best first
	Orders []Order          `json:"open_orders"` // that wait for a standing offer, the highest bid first
	Trades []marketv1.Trade `json:"trades"`      // newest first
	Depth  []Level          `json:"depth"`       // from the highest price down
	Prices Prices           `json:"prices"`

	Auction *Auction `json:"auction"`
	Now     int64    `json:"now_ms"` // protocol time
}

// Offer is a validator's, with what stands behind it.
type Offer struct {
	Validator string  `json:"validator"`
	FeeBps    uint32  `json:"fee_bps"`
	Ask       float64 `json:"ask_utally_per_gflop"` // of the cheapest provider, with the fee; 0 without providers
	Dearest   float64 `json:"dearest_utally_per_gflop"`
	Providers int     `json:"providers"` // that may get work
	Leads     int     `json:"leads"`     // orders
	Free      int     `json:"free"`      // orders that it would lead besides
	Since     int64   `json:"since_ms"`  // protocol time since which it has stood at its terms
	Ends      int64   `json:"ends_ms,omitempty"`
}

// Order is an open one.
type Order struct {
	Order    string  `json:"order"`
	Kind     string  `json:"kind"`
	MaxPrice uint64  `json:"max_price_utally"`
	FLOPs    float64 `json:"flops"`
	Bid      float64 `json:"bid_utally_per_gflop"` // all that it pays at most, over its work
	Expires  int64   `json:"expires_ms"`
}

// Level is how deep the book is at one price.
type Level struct {
	Price  float64 `json:"price_utally_per_gflop"`
	Demand float64 `json:"demand_gflop"`  // of open orders that bid so much or more
	Supply int     `json:"supply_leases"` // that offers would begin which ask so much or less
}

// Prices are those of the last trades. What somebody ordered from itself says nothing of prices, and is left out.
type Prices struct {
	Trades int       `json:"trades"` // that are counted
	GFLOP  Quantiles `json:"gflop"`  // of 10⁹ FLOP of a result, with all wages, burn and tax
	Token  Quantiles `json:"token"`  // of a token of text that is trained on once
	Hours  []Hour    `json:"tier_hours,omitempty"`
}

// Quantiles are of prices in utally; all 0 of no trades.
type Quantiles struct {
	Of  int     `json:"of"` // trades
	P10 float64 `json:"p10_utally"`
	P50 float64 `json:"p50_utally"`
	P90 float64 `json:"p90_utally"`
}

// Hour is what an hour of a provider at a tier's lower bound comes to, at the median of the trades.
type Hour struct {
	Tier  string  `json:"tier"`
	Speed uint64  `json:"flops_per_second"`
	Price float64 `json:"price_utally"`
}

// Book is what a view is made of.
type Book struct {
	Offers []marketv1.Offer
	Peers  []providerv1.Peer // providers
	Open   []marketv1.BookedOrder
	Leased []marketv1.BookedOrder
	Trades []marketv1.Trade
	Rules  providerv1.Params

	Auction *Auction
	Now     int64 // protocol time, ms
}

// Look reads the market.
func Look(ctx context.Context, node grpc.ClientConn) (*View, error) {
	b, err := read(ctx, node)
	if err != nil {
		return nil, err
	}
	return b.View(), nil
}

func read(ctx context.Context, node grpc.ClientConn) (b *Book, err error) {
	q, peers := marketv1.NewQueryClient(node), providerv1.NewQueryClient(node)
	b = &Book{}
	if b.Offers, err = client.Pages("offers", Most, func(p *query.PageRequest) ([]marketv1.Offer, *query.PageResponse, error) {
		r, err := q.Offers(ctx, &marketv1.QueryOffersRequest{Pagination: p})
		return r.GetOffers(), r.GetPagination(), err
	}); err != nil {
		return nil, err
	}
	if b.Peers, err = providers(ctx, peers, ""); err != nil {
		return nil, err
	}
	for status, into := range map[marketv1.Status]*[]marketv1.BookedOrder{marketv1.STATUS_OPEN: &b.Open, marketv1.STATUS_LEASED: &b.Leased} {
		if *into, err = client.Pages("orders", Most, func(p *query.PageRequest) ([]marketv1.BookedOrder, *query.PageResponse, error) {
			r, err := q.Orders(ctx, &marketv1.QueryOrdersRequest{Status: status, Pagination: p})
			return r.GetOrders(), r.GetPagination(), err
		}); err != nil {
			return nil, err
		}
	}
	if b.Trades, err = client.Pages("trades", Most, func(p *query.PageRequest) ([]marketv1.Trade, *query.PageResponse, error) {
		r, err := q.Trades(ctx, &marketv1.QueryTradesRequest{Pagination: p})
		return r.GetTrades(), r.GetPagination(), err
	}); err != nil {
		return nil, err
	}
	rules, err := peers.Params(ctx, &providerv1.QueryParamsRequest{})
	if err != nil {
		return nil, fmt.Errorf("ask for the tiers: %w", err)
	}
	b.Rules = rules.Params
	at, err := blockv1.NewQueryClient(node).Now(ctx, &blockv1.QueryNowRequest{})
	if err != nil {
		return nil, fmt.Errorf("ask for the time: %w", err)
	}
	b.Now = at.TimeMs
	b.Auction, err = readAuction(ctx, auctionv1.NewQueryClient(node), b)
	return b, err
}

// providers reads those behind a validator, or all for "".
func providers(ctx context.Context, q providerv1.QueryClient, lead string) ([]providerv1.Peer, error) {
	request := providerv1.QueryPeersRequest{Validator: lead}
	if lead == "" {
		request.Role = providerv1.ROLE_PROVIDER // a node is asked by one or the other
	}
	return client.Pages("providers", Most, func(p *query.PageRequest) ([]providerv1.Peer, *query.PageResponse, error) {
		request.Pagination = p
		found, err := q.Peers(ctx, &request)
		return found.GetPeers(), found.GetPagination(), err
	})
}

// View makes a view of a book.
func (b *Book) View() *View {
	v := &View{Offers: []Offer{}, Orders: []Order{}, Trades: slices.Concat([]marketv1.Trade{}, b.Trades), Depth: []Level{}, Prices: b.prices(), Auction: b.Auction, Now: b.Now}
	leads := map[string]int{}
	for _, o := range b.Leased {
		leads[o.Posting.Validator]++
	}
	rates := map[string][]float64{}
	for _, p := range b.Peers {
		if wire.Unable(&p, &b.Rules, b.Now) != "" {
			continue
		}
		rates[p.Listing.Validator] = append(rates[p.Listing.Validator], float64(p.Listing.UnitPrice))
	}
	for _, o := range b.Offers {
		x := Offer{
			Validator: o.Validator, FeeBps: o.FeeBps, Providers: len(rates[o.Validator]), Leads: leads[o.Validator],
			Free: max(0, int(o.MaxLeases)-leads[o.Validator]), Since: o.Since, Ends: o.Ends,
		}
		if all := rates[o.Validator]; len(all) > 0 {
			fee := 1 + float64(o.FeeBps)/10_000
			x.Ask, x.Dearest = slices.Min(all)*fee, slices.Max(all)*fee
		}
		v.Offers = append(v.Offers, x)
	}
	slices.SortFunc(v.Offers, func(x, y Offer) int {
		without := func(o Offer) int { return min(1, max(0, 1-o.Providers)) } // last
		return cmp.Or(cmp.Compare(without(x), without(y)), cmp.Compare(x.Ask, y.Ask), cmp.Compare(x.Since, y.Since), cmp.Compare(x.Validator, y.Validator))
	})
	for _, o := range b.Open {
		if o.Posting.Auction { // no offer meets it: it is among the demands of the auction
			continue
		}
		p, c := &o.Order.Problem, &o.Order.Conditions
		x := Order{
			Order: o.Id, Kind: p.Kind, MaxPrice: c.MaxPrice, Expires: o.Posting.ExpiresAt,
			FLOPs: float64(p.StepFlops) * float64(p.Steps) * float64(p.Rounds) * float64(p.Shards),
		}
		if x.FLOPs > 0 {
			x.Bid = float64(x.MaxPrice) / x.FLOPs * 1e9
		}
		v.Orders = append(v.Orders, x)
	}
	slices.SortStableFunc(v.Orders, func(x, y Order) int { return cmp.Compare(y.Bid, x.Bid) })
	v.Depth = depth(v.Offers, v.Orders)
	return v
}

// levels is how many prices depth is told at.
const levels = 8

// depth tells what is wanted and offered at prices from the highest of the book to the lowest, in equal ratios.
func depth(offers []Offer, orders []Order) (out []Level) {
	var all []float64
	for _, o := range offers {
		if o.Ask > 0 && o.Free > 0 {
			all = append(all, o.Ask)
		}
	}
	for _, o := range orders {
		if o.Bid > 0 {
			all = append(all, o.Bid)
		}
	}
	if len(all) == 0 {
		return []Level{}
	}
	low, high := slices.Min(all), slices.Max(all)
	n := levels
	if low == high {
		n = 1
	}
	for i := range n {
		at := Level{Price: high}
		switch {
		case i > 0 && i == n-1:
			at.Price = low
		case i > 0:
			at.Price = high * math.Pow(low/high, float64(i)/float64(n-1))
		}
		for _, o := range orders {
			if o.Bid >= at.Price {
				at.Demand += o.FLOPs / 1e9
			}
		}
		for _, o := range offers {
			if o.Ask > 0 && o.Ask <= at.Price {
				at.Supply += o.Free
			}
		}
		out = append(out, at)
	}
	return out
}

// prices tells what the trades were at.
func (b *Book) prices() Prices {
	var gflop, token []float64
	p := Prices{}
	for i := range b.Trades {
		t := &b.Trades[i]
		if t.Own {
			continue
		}
		p.Trades++
		if p := PerGFLOP(t); p > 0 {
			gflop = append(gflop, p)
		}
		if n := Tokens(t); n > 0 {
			token = append(token, float64(t.Price)/n)
		}
	}
	p.GFLOP, p.Token = quantiles(gflop), quantiles(token)
	for _, tier := range b.Rules.Tiers {
		if tier.Speed > 0 && p.GFLOP.Of > 0 {
			p.Hours = append(p.Hours, Hour{tier.Label, tier.Speed, float64(tier.Speed) / 1e9 * 3600 * p.GFLOP.P50})
		}
	}
	return p
}

// PerGFLOP returns what 10⁹ FLOP of a trade's result cost, in utally.
func PerGFLOP(t *marketv1.Trade) float64 {
	if t.Flops == 0 {
		return 0
	}
	return float64(t.Price) / float64(t.Flops) * 1e9
}

// tokenBytes is what a token takes in a record of text, as consumers of this code write it.
const tokenBytes = 4

// Tokens returns how many tokens a trade's training predicts, as its order states its records; 0 of other work. A record of n
// tokens has n − 1 to predict.
func Tokens(t *marketv1.Trade) float64 {
	if t.Kind != job.Training || t.RecordBytes < 2*tokenBytes {
		return 0
	}
	return float64(t.Records) * float64(t.RecordBytes/tokenBytes-1)
}

// quantiles are by nearest rank.
func quantiles(of []float64) Quantiles {
	if len(of) == 0 {
		return Quantiles{}
	}
	slices.Sort(of)
	rank := func(share float64) float64 { return of[max(0, int(math.Ceil(share*float64(len(of))))-1)] }
	return Quantiles{len(of), rank(0.1), rank(0.5), rank(0.9)}
}
