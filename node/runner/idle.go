package runner

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/chain/wire"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/role"
)

// Idle says why a registered provider has no work, as far as the chain tells, and what
// its owner can do about it; nothing if it takes part in an order.
func Idle(ctx context.Context, env *role.Env) (string, error) {
	p, err := Registered(ctx, env)
	if err != nil || p == nil {
		return "", err
	}
	leases, err := env.Live(ctx)
	if err != nil || len(leases) > 0 {
		return "", err
	}
	if why, err := unable(ctx, env, p); err != nil || why != "" {
		return why, err
	}
	lead := p.Listing.Validator
	all, err := offers(ctx, env)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(all, func(o marketv1.Offer) bool { return o.Validator == lead }) {
		return fmt.Sprintf("its validator %s offers nothing now: wait, or choose another with --validator (tally query market offers)", lead), nil
	}
	q := marketv1.NewQueryClient(env.Chain.Conn)
	open, err := q.Orders(ctx, &marketv1.QueryOrdersRequest{Status: marketv1.STATUS_OPEN, Pagination: &query.PageRequest{Limit: looked}})
	if err != nil {
		return "", fmt.Errorf("ask for open orders: %w", err)
	}
	if i := slices.IndexFunc(open.Orders, func(o marketv1.BookedOrder) bool { return !o.Posting.Auction }); i >= 0 {
		return unmet(ctx, q, open.Orders[i].Id, lead)
	}
	if len(open.Orders) > 0 {
		return unsold(ctx, env, &open.Orders[0])
	}
	teams, err := teams(ctx, env)
	if err != nil {
		return "", err
	}
	if len(teams[lead]) < 2 {
		return fmt.Sprintf("no order is open, and it is the only provider under %s: for orders that want more, choose a validator that has others with --validator", lead), nil
	}
	why, cheaper := fmt.Sprintf("no order is open; %d providers under %s wait for one", len(teams[lead]), lead), 0
	for _, price := range teams[lead] {
		if price < p.Listing.UnitPrice {
			cheaper++
		}
	}
	if cheaper > 0 {
		ask := "ask for less than %d utally per GFLOP, so they come first"
		if cheaper == 1 {
			ask = "asks for less than %d utally per GFLOP, so it comes first"
		}
		why += fmt.Sprintf(", and %d of them "+ask+": --price changes that", cheaper, p.Listing.UnitPrice)
	}
	return why, nil
}

// looked is how many open orders are looked at for one that takes standing offers.
const looked = 64

// unsold says why an order of auctions has not come to a provider.
func unsold(ctx context.Context, env *role.Env, o *marketv1.BookedOrder) (string, error) {
	r, err := auctionv1.NewQueryClient(env.Chain.Conn).Capacity(ctx, &auctionv1.QueryCapacityRequest{Provider: env.Account.Address})
	if err != nil {
		return "", fmt.Errorf("ask what is on sale: %w", err)
	}
	rules, err := providerv1.NewQueryClient(env.Chain.Conn).Params(ctx, &providerv1.QueryParamsRequest{})
	if err != nil {
		return "", fmt.Errorf("ask for the tiers: %w", err)
	}
	tier := o.Order.Conditions.Needs.Tier
	if n := len(rules.Params.Tiers); tier == "" && n > 0 {
		tier = rules.Params.Tiers[n-1].Label
	}
	return notSold(o.Id, tier, r.Capacity.Lots), nil
}

// notSold says what a provider with these lots can do about an order of auctions in a tier.
func notSold(order, tier string, lots []auctionv1.Lot) string {
	switch {
	case len(lots) == 0:
		return fmt.Sprintf("order %.8s waits for auctions, and meets no standing offer: --sell %s:GFLOP@PRICE sells to it; tally market shows what is wanted", order, tier)
	case !slices.ContainsFunc(lots, func(l auctionv1.Lot) bool { return l.Tier == tier }):
		return fmt.Sprintf("order %.8s waits for auctions of tier %s, and on sale are %s: --sell %s:GFLOP@PRICE sells to it", order, tier, wire.LotsText(lots), tier)
	}
	return fmt.Sprintf("order %.8s waits for the next auction, in which %s takes part: tally market shows when that is, and what others ask", order, wire.LotsText(lots))
}

// unable says what keeps a provider from any work.
func unable(ctx context.Context, env *role.Env, p *providerv1.Peer) (string, error) {
	r, err := providerv1.NewQueryClient(env.Chain.Conn).Params(ctx, &providerv1.QueryParamsRequest{})
	if err != nil {
		return "", fmt.Errorf("ask for the least stake: %w", err)
	}
	return wire.Unable(p, &r.Params, env.Chain.Head().Time), nil
}

// unmet says why an open order does not go to a validator.
func unmet(ctx context.Context, q marketv1.QueryClient, order, lead string) (string, error) {
	x, err := q.Explain(ctx, &marketv1.QueryExplainRequest{Order: order})
	if err != nil {
		return "", fmt.Errorf("offers for order %s: %w", order, err)
	}
	for _, b := range x.Bids {
		switch {
		case b.Validator != lead:
		case b.Obstacle != "":
			change := "--price and --validator"
			if len(b.Misses) > 0 {
				change = "--region, --tag, --privacy and --memory-gb say what this machine has, --price and --validator"
			}
			return fmt.Sprintf("order %.8s does not go to its validator %s: %s; %s change what it is offered", order, lead, b.Obstacle, change), nil
		case x.Best != lead:
			return fmt.Sprintf("order %.8s goes to validator %s, which is cheaper: --price and --validator change that", order, x.Best), nil
		}
	}
	return "", nil // it is about to be matched
}

// teams returns the unit prices of the providers under each validator.
func teams(ctx context.Context, env *role.Env) (map[string][]uint64, error) {
	all, err := client.Pages("providers", math.MaxInt, func(p *query.PageRequest) ([]providerv1.Peer, *query.PageResponse, error) {
		r, err := providerv1.NewQueryClient(env.Chain.Conn).Peers(ctx, &providerv1.QueryPeersRequest{Role: providerv1.ROLE_PROVIDER, Pagination: p})
		return r.GetPeers(), r.GetPagination(), err
	})
	out := map[string][]uint64{}
	for _, p := range all {
		out[p.Listing.Validator] = append(out[p.Listing.Validator], p.Listing.UnitPrice)
	}
	return out, err
}
