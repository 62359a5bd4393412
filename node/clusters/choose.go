package clusters

import (
	"cmp"
	"context"
	"slices"

	"github.com/cosmos/gogoproto/grpc"

	"github.com/tally-network/tally/core/cluster"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/p2p"
)

// Choose returns the validator for a provider that begins; "" if nobody offers anything. By asking validators
// what they have seen, the host sees how far away they are.
func Choose(ctx context.Context, node grpc.ClientConn, host *p2p.Host, account, region string) (string, error) {
	n, err := read(ctx, node)
	if err != nil || len(n.offers) == 0 {
		return "", err
	}
	s, _ := ask(ctx, host, n.validators[:min(len(n.validators), maxAsked)], n.providers)
	for _, l := range host.Links() {
		for _, v := range n.validators {
			if id, err := p2p.PeerID(v.PeerKey); err == nil && id == l.Peer {
				s[[2]string{account, v.Account}] = cluster.Link{RTT: uint64(l.RTT), Rate: l.Rate}
			}
		}
	}
	return n.choose(s, account, region)
}

// choose returns the validator that takes the smallest fee, of those with room whom nobody would leave for the best; of
// several the one with the most providers, for orders want some. Where there is no room, the same holds of all.
func (n *network) choose(s seen, account, region string) (string, error) {
	n.providers = slices.DeleteFunc(n.providers, func(p providerv1.Peer) bool { return p.Account == account })
	p := providerv1.Peer{Account: account}
	p.Listing.Declared.Region = region
	places, err := cluster.Places(n.leads(), n.all(s, account), n.provider(&p, s, account), cluster.Standard)
	if err != nil {
		return "", err
	}
	good := slices.Clone(n.offers)
	if len(places) > 0 {
		good = good[:0]
		for i := range n.offers {
			at := slices.IndexFunc(places, func(p cluster.Place) bool { return p.Validator == n.offers[i].Validator })
			if at >= 0 && !cluster.Standard.Worth(places[at].Cost, places[0].Cost) {
				good = append(good, n.offers[i])
			}
		}
	}
	under := map[string]int{}
	for _, p := range n.providers {
		under[p.Listing.Validator]++
	}
	slices.SortStableFunc(good, func(a, b marketv1.Offer) int {
		return cmp.Or(cmp.Compare(a.FeeBps, b.FeeBps), cmp.Compare(under[b.Validator], under[a.Validator]))
	})
	return good[0].Validator, nil
}
