package probe

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"cosmossdk.io/collections"

	"github.com/tally-network/tally/chain/address"
	probev1 "github.com/tally-network/tally/gen/tally/probe/v1"
)

type queryServer struct{ *Keeper }

func (q queryServer) Probe(ctx context.Context, r *probev1.QueryProbeRequest) (*probev1.QueryProbeResponse, error) {
	account, err := address.Parse(r.Account)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	p, err := q.probes.Get(ctx, account)
	if errors.Is(err, collections.ErrNotFound) {
		return nil, status.Errorf(codes.NotFound, "%s has no probe under way", r.Account)
	}
	return &probev1.QueryProbeResponse{Probe: p}, err
}
