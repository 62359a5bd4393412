package drilling

import (
	"context"
	"errors"

	"cosmossdk.io/collections"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cosmos/cosmos-sdk/types/query"

	drillingv1 "github.com/tally-network/tally/gen/tally/drilling/v1"
)

type queryServer struct{ k *Keeper }

func (q queryServer) Projects(ctx context.Context, r *drillingv1.QueryProjectsRequest) (*drillingv1.QueryProjectsResponse, error) {
	all, page, err := query.CollectionPaginate(ctx, q.k.projects, r.Pagination,
		func(_ uint64, p drillingv1.Project) (drillingv1.Project, error) { return p, nil })
	return &drillingv1.QueryProjectsResponse{Projects: all, Pagination: page}, err
}

func (q queryServer) Project(ctx context.Context, r *drillingv1.QueryProjectRequest) (*drillingv1.QueryProjectResponse, error) {
	p, err := q.k.Get(ctx, r.Project)
	if errors.Is(err, ErrNoProject) {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	return &drillingv1.QueryProjectResponse{Project: p}, err
}

func (q queryServer) Tasks(ctx context.Context, r *drillingv1.QueryTasksRequest) (*drillingv1.QueryTasksResponse, error) {
	all, page, err := query.CollectionPaginate(ctx, q.k.tasks, r.Pagination,
		func(_ collections.Pair[uint64, uint64], t drillingv1.Task) (drillingv1.Task, error) { return t, nil },
		query.WithCollectionPaginationPairPrefix[uint64, uint64](r.Project))
	return &drillingv1.QueryTasksResponse{Tasks: all, Pagination: page}, err
}

func (q queryServer) Params(ctx context.Context, _ *drillingv1.QueryParamsRequest) (*drillingv1.QueryParamsResponse, error) {
	p, err := q.k.rules.Get(ctx)
	if err != nil {
		return nil, err
	}
	authority, err := q.k.rules.Authority(ctx)
	return &drillingv1.QueryParamsResponse{Params: p, Authority: authority}, err
}
