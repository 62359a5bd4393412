package provider

import (
	"context"
	"errors"

	"cosmossdk.io/collections"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/query"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

type queryServer struct{ k *Keeper }

func (q queryServer) Peer(ctx context.Context, r *providerv1.QueryPeerRequest) (*providerv1.QueryPeerResponse, error) {
	account, err := address.Parse(r.Account)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	p, err := q.k.Get(ctx, account)
	if err != nil {
		return nil, asStatus(err)
	}
	if p, err = q.shown(ctx, p); err != nil {
		return nil, err
	}
	params, err := q.k.Params(ctx)
	speed := wire.SpeedOf(&p.Pace)
	return &providerv1.QueryPeerResponse{Peer: p, Speed: speed, Tier: wire.TiersFromProto(params.Tiers).Of(speed)}, err
}

func (q queryServer) PeerByKey(ctx context.Context, r *providerv1.QueryPeerByKeyRequest) (*providerv1.QueryPeerByKeyResponse, error) {
	p, err := q.k.ByPeerKey(ctx, r.PeerKey)
	if err != nil {
		return nil, asStatus(err)
	}
	p, err = q.shown(ctx, p)
	return &providerv1.QueryPeerByKeyResponse{Peer: p}, err
}

// shown is a peer as it is told of: one whose owner is excluded is not stored so.
func (q queryServer) shown(ctx context.Context, p providerv1.Peer) (providerv1.Peer, error) {
	gone, err := q.k.isExcluded(ctx, p.Owner)
	if gone {
		p.JailedUntil = wire.Forever
	}
	return p, err
}

func (q queryServer) Peers(ctx context.Context, r *providerv1.QueryPeersRequest) (*providerv1.QueryPeersResponse, error) {
	var group string
	switch {
	case r.Validator != "" && r.Role != providerv1.ROLE_UNSPECIFIED:
		return nil, status.Error(codes.InvalidArgument, "ask by role or by validator, not by both")
	case r.Validator != "":
		if _, err := address.Parse(r.Validator); err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
		group = r.Validator
	case r.Role != providerv1.ROLE_UNSPECIFIED:
		group = r.Role.String()
	default:
		peers, page, err := query.CollectionPaginate(ctx, q.k.peers, r.Pagination,
			func(_ sdk.AccAddress, p providerv1.Peer) (providerv1.Peer, error) { return q.shown(ctx, p) })
		return &providerv1.QueryPeersResponse{Peers: peers, Pagination: page}, err
	}
	peers, page, err := query.CollectionPaginate(ctx, q.k.members, r.Pagination,
		func(m collections.Pair[string, sdk.AccAddress], _ collections.NoValue) (providerv1.Peer, error) {
			p, err := q.k.Get(ctx, m.K2())
			if err != nil {
				return p, err
			}
			return q.shown(ctx, p)
		}, query.WithCollectionPaginationPairPrefix[string, sdk.AccAddress](group))
	return &providerv1.QueryPeersResponse{Peers: peers, Pagination: page}, err
}

func (q queryServer) Params(ctx context.Context, _ *providerv1.QueryParamsRequest) (*providerv1.QueryParamsResponse, error) {
	params, err := q.k.Params(ctx)
	if err != nil {
		return nil, err
	}
	authority, err := q.k.rules.Authority(ctx)
	return &providerv1.QueryParamsResponse{Params: params, Authority: authority}, err
}

func (q queryServer) Stake(ctx context.Context, _ *providerv1.QueryStakeRequest) (*providerv1.QueryStakeResponse, error) {
	t, err := q.k.totals(ctx)
	t.Insurance = q.k.balance(ctx, Insurance)
	return &t, err
}

func (q queryServer) Unbonding(ctx context.Context, r *providerv1.QueryUnbondingRequest) (*providerv1.QueryUnbondingResponse, error) {
	account, err := address.Parse(r.Account)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	all, page, err := module.UnbondingPage(ctx, q.k.Unbonding, account, r.Pagination, func(until int64, amount uint64) providerv1.Unbonding {
		return providerv1.Unbonding{Account: r.Account, Until: until, Amount: amount}
	})
	return &providerv1.QueryUnbondingResponse{Unbonding: all, Pagination: page}, err
}

// totals adds up the ledger.
func (k *Keeper) totals(ctx context.Context) (t providerv1.QueryStakeResponse, err error) {
	err = k.peers.Walk(ctx, nil, func(_ sdk.AccAddress, p providerv1.Peer) (bool, error) {
		t.Stake += p.Stake
		t.Reserved += p.Reserved
		return false, nil
	})
	return t, err
}

// balance returns the utally of a module's account.
func (k *Keeper) balance(ctx context.Context, name string) uint64 {
	return k.bank.GetBalance(ctx, authtypes.NewModuleAddress(name), coin.Denom).Amount.Uint64()
}

func asStatus(err error) error {
	if errors.Is(err, ErrNotRegistered) {
		return status.Error(codes.NotFound, err.Error())
	}
	return err
}
