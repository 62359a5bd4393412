package market

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cosmos/gogoproto/grpc"

	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/auction"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// Auction is what is bid at auctions, and what the last clearings came to.
type Auction struct {
	Tiers    []TierBook          `json:"tiers"`              // where anything is bid
	Next     int64               `json:"next_ms"`            // protocol time before which no clearing begins
	Clearing uint64              `json:"clearing,omitempty"` // under way
	State    State               `json:"state,omitempty"`    // of that
	Until    int64               `json:"until_ms,omitempty"` // protocol time at which the state ends; 0: with what it waits for
	Cleared  []auctionv1.Cleared `json:"cleared"`            // newest first
}

// State is what a clearing under way does.
type State string

// States of a clearing, in their order: open bids are cleared by certificates; sealed ones are taken, revealed, and wait for a draw.
const (
	Open      State = "open"
	Sealed    State = "sealed"
	Revealing State = "revealing"
	Waiting   State = "waiting"
	Closed    State = "closed"
)

// TierBook is what is bid for a tier. Units are of 10⁹ floating-point operations, of which a byte that is moved counts as some.
type TierBook struct {
	Tier    string `json:"tier"`
	Orders  int    `json:"orders"`
	Wanted  uint64 `json:"wanted_units"`
	Sellers int    `json:"sellers"`
	Offered uint64 `json:"offered_units"`
	Ask     uint64 `json:"ask_utally,omitempty"` // the least, for a unit; 0: nobody sells, or asks are sealed
	Idle    int    `json:"idle_lots,omitempty"`  // that the rule does not sell
	Thin    string `json:"thin,omitempty"`       // why nothing can be traded, however it is bid; empty: something may be
	Unsold  string `json:"unsold,omitempty"`     // why the idle lots are not sold
}

// taken returns how many units of a lot a clearing takes. Where bids are sealed, it takes as many of each lot; where they are open,
// all of those with a price. Of others it says why they are not sold.
func taken(p *auctionv1.Params, l *auctionv1.Lot) (units uint64, why string) {
	switch sealed := wire.SealedBids(p); {
	case sealed && l.Units < p.LotUnits:
		return 0, fmt.Sprintf("by rule %s a lot has %d units at least, since who sells computes whichever order it gets", p.Rule, p.LotUnits)
	case sealed:
		return p.LotUnits, ""
	case l.Ask == 0:
		return 0, fmt.Sprintf("by rule %s bids are open, and a lot needs a price: tally tx auction sell", p.Rule)
	}
	return l.Units, ""
}

// thin says why nothing of a tier can be traded by a rule with so many orders and sellers, though there are some.
func thin(rule auction.Rule, tier string, orders, sellers int) string {
	buy, sell := rule.Fewest()
	if orders < 1 || sellers < 1 || orders >= buy && sellers >= sell {
		return ""
	}
	return fmt.Sprintf("by rule %v tier %s trades nothing before %d want it and %d sell it, and %d and %d do now: who trades must not set its own price", rule, tier, buy, sell, orders, sellers)
}

// readAuction reads what is bid. An order that names no tier is shown with the slowest.
func readAuction(ctx context.Context, q auctionv1.QueryClient, b *Book) (*Auction, error) {
	demands, sold, err := bidsOf(ctx, q, b.sellers())
	if err != nil {
		return nil, err
	}
	over, err := q.Cleared(ctx, &auctionv1.QueryClearedRequest{Pagination: &query.PageRequest{Limit: lastCleared}})
	if err != nil {
		return nil, err
	}
	under, err := q.Clearing(ctx, &auctionv1.QueryClearingRequest{})
	if err != nil {
		return nil, err
	}
	params, err := q.Params(ctx, &auctionv1.QueryParamsRequest{})
	if err != nil {
		return nil, err
	}
	books, err := tierBooks(demands, sold, b.Rules.Tiers, &params.Params)
	if err != nil {
		return nil, err
	}
	a := &Auction{Tiers: books, Next: under.NextAt, Cleared: slices.Concat([]auctionv1.Cleared{}, over.Cleared)}
	if p := under.Progress; p != nil {
		a.Clearing = p.Number
		a.State, a.Until = stateOf(p, b.Now)
	}
	return a, nil
}

// lastCleared is how many clearings a view has: all that a chain keeps, for most of them may have sold nothing.
const lastCleared = 64

// stateOf returns what a clearing does at a protocol time, and until when.
func stateOf(p *auctionv1.Progress, now int64) (State, int64) {
	switch {
	case p.Closed:
		return Closed, 0
	case p.RevealsUntil == 0:
		return Open, p.ClosesAt
	case now < p.ClosesAt:
		return Sealed, p.ClosesAt
	case p.RevealedAt == 0:
		return Revealing, p.RevealsUntil
	}
	return Waiting, 0
}

func tierBooks(demands []auctionv1.Demand, sold []auctionv1.Capacity, tiers []providerv1.Tier, p *auctionv1.Params) ([]TierBook, error) {
	rules, err := wire.ClearingRules(p)
	if err != nil {
		return nil, err
	}
	books := make([]TierBook, len(tiers))
	for i, t := range tiers {
		books[i].Tier = t.Label
	}
	of := func(tier string) *TierBook {
		i := slices.IndexFunc(tiers, func(t providerv1.Tier) bool { return t.Label == tier })
		if tier == "" {
			i = len(tiers) - 1
		}
		if i < 0 {
			return &TierBook{} // the rules have no such tier any more
		}
		return &books[i]
	}
	for _, d := range demands {
		b := of(d.Tier)
		b.Orders++
		b.Wanted += d.Units
	}
	for _, c := range sold {
		for _, l := range c.Lots {
			b := of(l.Tier)
			units, why := taken(p, &l)
			if units == 0 {
				b.Idle++
				b.Unsold = why
				continue
			}
			b.Sellers++
			b.Offered += units
			b.Ask = min(cmp.Or(b.Ask, l.Ask), cmp.Or(l.Ask, b.Ask)) // 0: sealed
		}
	}
	for i := range books {
		b := &books[i]
		b.Thin = thin(rules.Rule, b.Tier, b.Orders, b.Sellers)
	}
	return slices.DeleteFunc(books, func(b TierBook) bool { return b.Orders+b.Sellers+b.Idle == 0 }), nil
}

// Found is a clearing as somebody may post it, beside what there is without.
type Found struct {
	Clearing uint64 `json:"clearing"`
	Closes   int64  `json:"closes_ms"` // protocol time from which no certificate is taken
	Demands  int    `json:"demands"`
	Sellers  int    `json:"sellers"`
	Welfare  uint64 `json:"welfare_utally"`
	Trades   uint32 `json:"trades"`
	Fallback uint64 `json:"fallback_welfare_utally"` // what the chain finds by itself
	Posted   uint64 `json:"posted_welfare_utally"`   // of the best certificate so far; 0 if there is none
	Better   bool   `json:"better"`                  // than both

	Message *auctionv1.MsgPostClearing `json:"-"` // without its poster
}

// ErrNoClearing is returned when no clearing takes certificates.
var ErrNoClearing = errors.New("no clearing takes certificates now: tally market shows when the next one begins")

// measures is how many a search tries.
const measures = 300

// Clear looks for the best clearing of what is bid in the one under way.
func Clear(ctx context.Context, node grpc.ClientConn) (*Found, error) {
	r, err := auctionv1.NewQueryClient(node).Clearing(ctx, &auctionv1.QueryClearingRequest{})
	if err != nil {
		return nil, err
	}
	if r.Clearing == nil || r.Progress.Closed || r.Progress.RevealsUntil != 0 {
		return nil, ErrNoClearing
	}
	b, rules, err := wire.BookOf(r.Clearing)
	if err != nil {
		return nil, err
	}
	_, own, err := auction.Fallback(b, rules)
	if err != nil {
		return nil, err
	}
	_, cert, err := auction.Search(b, rules, measures)
	if err != nil {
		return nil, err
	}
	f := &Found{
		Clearing: r.Clearing.Number, Closes: r.Clearing.ClosesAt, Demands: len(b.Tasks), Sellers: len(b.Providers),
		Welfare: cert.Welfare, Trades: cert.Trades, Fallback: own.Welfare, Posted: r.Progress.Welfare, Better: cert.Better(own),
		Message: &auctionv1.MsgPostClearing{Clearing: r.Clearing.Number, Certificate: wire.CertificateToProto(cert)},
	}
	best, posted, err := wire.ClaimOf(r.Progress)
	f.Better = f.Better && (!posted || cert.Better(&best))
	return f, err
}
