package dispute

import (
	"context"
	"errors"

	"cosmossdk.io/collections"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
)

type queryServer struct{ *Keeper }

func (q queryServer) Dispute(ctx context.Context, r *disputev1.QueryDisputeRequest) (*disputev1.QueryDisputeResponse, error) {
	g, p, err := q.Game(ctx, r.Dispute)
	if errors.Is(err, ErrNoDispute) {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	if err != nil {
		return nil, err
	}
	return &disputev1.QueryDisputeResponse{Dispute: wire.DisputeToProto(r.Dispute, p, &g), Game: canon.Marshal(&g)}, nil
}

func (q queryServer) Disputes(ctx context.Context, r *disputev1.QueryDisputesRequest) (*disputev1.QueryDisputesResponse, error) {
	res := &disputev1.QueryDisputesResponse{}
	var err error
	switch {
	case more(r.Order != "", r.Open, r.Turn != "", r.Missed):
		return nil, status.Error(codes.InvalidArgument, "ask by order, for open ones, by turn, or for missed answers: one of these")
	case r.Turn != "":
		if _, err := address.Parse(r.Turn); err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
		res.Disputes, res.Pagination, err = query.CollectionPaginate(ctx, q.turns, r.Pagination,
			func(k collections.Pair[string, uint64], _ collections.NoValue) (disputev1.Dispute, error) {
				return q.view(ctx, k.K2())
			},
			query.WithCollectionPaginationPairPrefix[string, uint64](r.Turn))
	case r.Missed:
		res.Disputes, res.Pagination, err = query.CollectionPaginate(ctx, q.missed, r.Pagination,
			func(id uint64, _ collections.NoValue) (disputev1.Dispute, error) { return q.view(ctx, id) })
	case r.Order != "":
		order, bad := canon.ParseHash(r.Order)
		if bad != nil {
			return nil, status.Error(codes.InvalidArgument, bad.Error())
		}
		res.Disputes, res.Pagination, err = query.CollectionPaginate(ctx, q.byOrder, r.Pagination,
			func(k collections.Pair[[]byte, uint64], _ collections.NoValue) (disputev1.Dispute, error) {
				return q.view(ctx, k.K2())
			},
			query.WithCollectionPaginationPairPrefix[[]byte, uint64](order[:]))
	case r.Open:
		res.Disputes, res.Pagination, err = query.CollectionPaginate(ctx, q.queue, r.Pagination,
			func(k place, _ collections.NoValue) (disputev1.Dispute, error) { return q.view(ctx, k.K3()) })
	default:
		res.Disputes, res.Pagination, err = query.CollectionPaginate(ctx, q.parties, r.Pagination,
			func(id uint64, _ disputev1.Parties) (disputev1.Dispute, error) { return q.view(ctx, id) })
	}
	return res, err
}

// more reports whether more than one of these is so.
func more(all ...bool) bool {
	n := 0
	for _, is := range all {
		if is {
			n++
		}
	}
	return n > 1
}

// view returns a dispute. Of one that cannot be read it says why, so that the
// others can be listed.
func (q queryServer) view(ctx context.Context, id uint64) (disputev1.Dispute, error) {
	g, p, err := q.Game(ctx, id)
	if err != nil {
		return disputev1.Dispute{Id: id, Reason: err.Error()}, nil
	}
	return wire.DisputeToProto(id, p, &g), nil
}

func (q queryServer) Params(ctx context.Context, _ *disputev1.QueryParamsRequest) (*disputev1.QueryParamsResponse, error) {
	p, err := q.rules.Get(ctx)
	if err != nil {
		return nil, err
	}
	authority, err := q.rules.Authority(ctx)
	return &disputev1.QueryParamsResponse{Params: p, Authority: authority}, err
}
