package supply

import (
	"context"

	supplyv1 "github.com/tally-network/tally/gen/tally/supply/v1"
)

type queryServer struct {
	*Keeper
	check Check
}

func (q queryServer) Supply(ctx context.Context, _ *supplyv1.QuerySupplyRequest) (*supplyv1.QuerySupplyResponse, error) {
	s, err := q.totals(ctx)
	return &s, err
}

func (q queryServer) Check(ctx context.Context, _ *supplyv1.QueryCheckRequest) (*supplyv1.QueryCheckResponse, error) {
	if err := q.check(ctx); err != nil {
		return &supplyv1.QueryCheckResponse{Fault: err.Error()}, nil
	}
	return &supplyv1.QueryCheckResponse{Ok: true}, nil
}
