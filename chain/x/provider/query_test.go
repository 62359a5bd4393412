package provider_test

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/query"

	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

func TestQueries(t *testing.T) {
	options := []chaintest.Option{
		chaintest.Validator(lead.Name, 1_000*tally),
		chaintest.Validator(other.Name, 1_000*tally),
		chaintest.Challenger("w", 100*tally),
	}
	for i := range 5 {
		options = append(options, chaintest.Provider(fmt.Sprint("p", i), lead.Name, 100*tally, 3))
	}
	c := chaintest.New(t, append(options, chaintest.Provider("q", other.Name, 100*tally, 3))...)
	q, ctx := providerv1.NewQueryClient(c), context.Background()

	for name, x := range map[string]struct {
		request providerv1.QueryPeersRequest
		want    int
	}{
		"all":               {providerv1.QueryPeersRequest{}, 9},
		"providers":         {providerv1.QueryPeersRequest{Role: providerv1.ROLE_PROVIDER}, 6},
		"validators":        {providerv1.QueryPeersRequest{Role: providerv1.ROLE_VALIDATOR}, 2},
		"under a validator": {providerv1.QueryPeersRequest{Validator: lead.String()}, 5},
		"under a stranger":  {providerv1.QueryPeersRequest{Validator: alice.String()}, 0},
	} {
		seen := map[string]bool{}
		for page := (&query.PageRequest{Limit: 2}); page != nil; {
			x.request.Pagination = page
			r, err := q.Peers(ctx, &x.request)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, p := range r.Peers {
				seen[p.Account] = true
			}
			if page = nil; len(r.Pagination.NextKey) > 0 {
				page = &query.PageRequest{Limit: 2, Key: r.Pagination.NextKey}
			}
		}
		if len(seen) != x.want {
			t.Errorf("%s: %d peers, want %d", name, len(seen), x.want)
		}
	}

	p, err := q.Peer(ctx, &providerv1.QueryPeerRequest{Account: lead.String()})
	if err != nil || p.Peer.Roles[0] != providerv1.ROLE_VALIDATOR {
		t.Fatalf("%v, %v", p, err)
	}
	k, err := q.PeerByKey(ctx, &providerv1.QueryPeerByKeyRequest{PeerKey: lead.PeerKey()})
	if err != nil || k.Peer.Account != lead.String() {
		t.Fatalf("%v, %v", k, err)
	}
	if err := c.Do(func(ctx sdk.Context) error { return c.Provider.Slash(ctx, other.Address, 0, 3, nil) }); err != nil {
		t.Fatal(err)
	}
	s, err := q.Stake(ctx, &providerv1.QueryStakeRequest{})
	if err != nil || s.Stake != 2_700*tally-3 || s.Reserved != 0 || s.Insurance != 3 {
		t.Fatalf("%v, %v", s, err)
	}
	if r, err := q.Params(ctx, &providerv1.QueryParamsRequest{}); err != nil || r.Params.MinChallengerStake != 100*tally {
		t.Fatalf("%v, %v", r, err)
	}
}

func TestQueriesRefuse(t *testing.T) {
	q, ctx := providerv1.NewQueryClient(newChain(t)), context.Background()
	for name, x := range map[string]struct {
		call func() error
		want codes.Code
	}{
		"stranger": {func() error {
			_, err := q.Peer(ctx, &providerv1.QueryPeerRequest{Account: alice.String()})
			return err
		}, codes.NotFound},
		"no address": {func() error {
			_, err := q.Peer(ctx, &providerv1.QueryPeerRequest{Account: "x"})
			return err
		}, codes.InvalidArgument},
		"unknown key": {func() error {
			_, err := q.PeerByKey(ctx, &providerv1.QueryPeerByKeyRequest{PeerKey: []byte{1}})
			return err
		}, codes.NotFound},
		"a role as validator": {func() error {
			_, err := q.Peers(ctx, &providerv1.QueryPeersRequest{Validator: "ROLE_CHALLENGER"})
			return err
		}, codes.InvalidArgument},
		"role and validator": {func() error {
			_, err := q.Peers(ctx, &providerv1.QueryPeersRequest{Role: providerv1.ROLE_PROVIDER, Validator: lead.String()})
			return err
		}, codes.InvalidArgument},
	} {
		if err := x.call(); status.Code(err) != x.want {
			t.Errorf("%s: %v, want %s", name, err, x.want)
		}
	}
}
