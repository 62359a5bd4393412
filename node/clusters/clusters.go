// Package clusters plans by what the network's own transfers tell which validator each provider does best to work under.
//
// Call [Look] for a [View] of the whole plan, and [Choose] for the validator of a provider that begins.
//
// Invariants: whoever asks the same peers at the same time makes the same plan, but for what it has seen itself, which goes
// before what others say. A bounded number of peers is asked, and what they say is used only of links
// between a provider and a validator. Nothing on chain follows from a plan.
//
// Source: docs/spec/clusters.md; core/cluster makes the plan, and p2p has what was seen.
package clusters

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/cosmos/gogoproto/grpc"
	"github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/sync/errgroup"

	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/cluster"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/match"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/p2p"
)

// Limits of asking peers what they have seen.
const (
	maxAsked   = 1024
	atOnce     = 32
	askTimeout = 20 * time.Second // for all of them: a plan of those that answered is better than a late one
)

// network is what the chain tells of those who may be in clusters.
type network struct {
	offers     []marketv1.Offer
	validators []providerv1.Peer // of the offers, in their order
	providers  []providerv1.Peer
	tiers      match.Tiers
}

func read(ctx context.Context, node grpc.ClientConn) (n *network, err error) {
	n = &network{}
	q := providerv1.NewQueryClient(node)
	if n.offers, err = client.Pages("offers", math.MaxInt, func(p *query.PageRequest) ([]marketv1.Offer, *query.PageResponse, error) {
		r, err := marketv1.NewQueryClient(node).Offers(ctx, &marketv1.QueryOffersRequest{Pagination: p})
		return r.GetOffers(), r.GetPagination(), err
	}); err != nil {
		return nil, err
	}
	of := func(role providerv1.Role) ([]providerv1.Peer, error) {
		return client.Pages("peers", math.MaxInt, func(p *query.PageRequest) ([]providerv1.Peer, *query.PageResponse, error) {
			r, err := q.Peers(ctx, &providerv1.QueryPeersRequest{Role: role, Pagination: p})
			return r.GetPeers(), r.GetPagination(), err
		})
	}
	if n.providers, err = of(providerv1.ROLE_PROVIDER); err != nil {
		return nil, err
	}
	all, err := of(providerv1.ROLE_VALIDATOR)
	if err != nil {
		return nil, err
	}
	rules, err := q.Params(ctx, &providerv1.QueryParamsRequest{})
	if err != nil {
		return nil, fmt.Errorf("ask for the tiers: %w", err)
	}
	n.tiers = wire.TiersFromProto(rules.Params.Tiers)
	n.lead(all, &rules.Params)
	return n, nil
}

// lead enters the validators that may lead something. An offer stands whatever becomes of its validator, and costs a fee: those
// without the least stake, or excluded, would take room from the others, and newcomers by a fee of nothing.
func (n *network) lead(all []providerv1.Peer, rules *providerv1.Params) {
	of := map[string]*providerv1.Peer{}
	for i := range all {
		if p := &all[i]; p.Stake >= rules.MinValidatorStake && p.JailedUntil != wire.Forever {
			of[p.Account] = p
		}
	}
	n.offers = slices.DeleteFunc(n.offers, func(o marketv1.Offer) bool {
		p := of[o.Validator]
		if p != nil {
			n.validators = append(n.validators, *p)
		}
		return p == nil
	})
}

// seen is what accounts have seen of each other.
type seen map[[2]string]cluster.Link

// ask asks peers what they have seen of others, and returns how many have told. Who cannot be reached has seen nothing.
func ask(ctx context.Context, host *p2p.Host, peers, about []providerv1.Peer) (out seen, told int) {
	ids := map[peer.ID]string{}
	for _, p := range about {
		if id, err := p2p.PeerID(p.PeerKey); err == nil {
			ids[id] = p.Account
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	out = seen{}
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(atOnce)
	for _, p := range peers {
		g.Go(func() error {
			links, err := linksOf(ctx, host, &p)
			if err != nil {
				return nil //nolint:nilerr // it has seen nothing
			}
			mu.Lock()
			defer mu.Unlock()
			told++
			for _, l := range links {
				if account, ok := ids[l.Peer]; ok {
					out[[2]string{p.Account, account}] = cluster.Link{RTT: uint64(l.RTT), Rate: l.Rate}
				}
			}
			return nil
		})
	}
	_ = g.Wait()
	return out, told
}

func linksOf(ctx context.Context, host *p2p.Host, p *providerv1.Peer) ([]p2p.Link, error) {
	id, err := p2p.PeerID(p.PeerKey)
	if err != nil {
		return nil, err
	}
	if id == host.ID() {
		return host.Links(), nil
	}
	if err := host.SetAddrs(id, p.Listing.Addrs); err != nil {
		return nil, err
	}
	return host.LinksOf(ctx, id)
}

// between returns what is believed of the link of two accounts. What one of them has seen itself, and is asked for
// its own sake, goes before what the other says.
func (s seen) between(a, b, me string) cluster.Link {
	mine, theirs := s[[2]string{a, b}], s[[2]string{b, a}]
	if b == me {
		mine, theirs = theirs, mine
	}
	out := cluster.Between(mine, theirs)
	if a == me || b == me {
		out = cluster.Link{RTT: cmp.Or(mine.RTT, out.RTT), Rate: cmp.Or(mine.Rate, out.Rate)}
	}
	return out
}

// leads returns the validators, as a plan knows them.
func (n *network) leads() (out []cluster.Validator) {
	room := min(cluster.Room(len(n.providers), len(n.validators)), job.MaxParties)
	for _, v := range n.validators {
		out = append(out, cluster.Validator{Account: v.Account, Room: room})
	}
	return out
}

// provider returns a provider as a plan knows it. A validator's own is as near to it as can be.
func (n *network) provider(p *providerv1.Peer, s seen, me string) cluster.Provider {
	out := cluster.Provider{Account: p.Account, Now: p.Listing.Validator, Region: p.Listing.Declared.Region, Speed: wire.SpeedOf(&p.Pace)}
	for _, v := range n.validators {
		l := cluster.Link{RTT: 1, Rate: 1 << 40}
		if v.Account != p.Account {
			l = s.between(p.Account, v.Account, me)
		}
		out.Links = append(out.Links, l)
	}
	return out
}

func (n *network) all(s seen, me string) (out []cluster.Provider) {
	for i := range n.providers {
		out = append(out, n.provider(&n.providers[i], s, me))
	}
	return out
}
