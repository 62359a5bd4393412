package work

import (
	"cmp"
	"context"
	"errors"

	"cosmossdk.io/collections"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

type queryServer struct{ *Keeper }

func (q queryServer) Lease(ctx context.Context, r *workv1.QueryLeaseRequest) (*workv1.QueryLeaseResponse, error) {
	id, err := canon.ParseHash(r.Order)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	l, err := q.load(ctx, id, skeleton)
	if err != nil {
		return nil, asStatus(err)
	}
	for r := range l.Round {
		l.part.Merges = append(l.part.Merges, r)
	}
	l.part.SlashPaid = true
	err = q.leases.fill(ctx, id, l)
	return &workv1.QueryLeaseResponse{Lease: wire.LeaseToProto(id, &l.Lease)}, err
}

func (q queryServer) Live(ctx context.Context, r *workv1.QueryLiveRequest) (*workv1.QueryLiveResponse, error) {
	height := uint64(sdk.UnwrapSDKContext(ctx).BlockHeight())
	type byParty = collections.Triple[string, bool, []byte]
	live := func(raw []byte, height uint64) (workv1.LiveLease, error) {
		id, err := canon.HashOf(raw)
		return workv1.LiveLease{Order: id.String(), Changed: height}, err
	}
	if r.Participant == "" {
		leases, page, err := query.CollectionPaginate(ctx, q.leases.changed, r.Pagination, live)
		return &workv1.QueryLiveResponse{Leases: leases, Pagination: page, Height: height}, err
	}
	if _, err := address.Parse(r.Participant); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	within := collections.TripleSuperPrefix[string, bool, []byte](r.Participant, false)
	leases, page, err := query.CollectionPaginate(ctx, q.leases.parties, r.Pagination,
		func(k byParty, _ collections.NoValue) (workv1.LiveLease, error) {
			height, err := q.leases.changed.Get(ctx, k.K3())
			if err != nil {
				return workv1.LiveLease{}, err
			}
			return live(k.K3(), height)
		},
		func(o *query.CollectionsPaginateOptions[byParty]) { o.Prefix = &within })
	return &workv1.QueryLiveResponse{Leases: leases, Pagination: page, Height: height}, err
}

func (q queryServer) State(ctx context.Context, r *workv1.QueryStateRequest) (*workv1.QueryStateResponse, error) {
	id, err := canon.ParseHash(r.Order)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	l, err := q.load(ctx, id, func(l *job.Lease) job.Part {
		p := l.Everything()
		p.NoRoots = r.Brief
		return p
	})
	if err != nil {
		return nil, asStatus(err)
	}
	changed, err := q.leases.changed.Get(ctx, id[:])
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return nil, err
	}
	return &workv1.QueryStateResponse{Lease: canon.Marshal(&l.Lease), Changed: changed}, nil
}

func (q queryServer) Roots(ctx context.Context, r *workv1.QueryRootsRequest) (*workv1.QueryRootsResponse, error) {
	id, err := canon.ParseHash(r.Order)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if n := len(r.Units); n == 0 || n > job.MaxUnits {
		return nil, status.Errorf(codes.InvalidArgument, "checkpoints of %d units are asked for: name 1 to %d, as units", n, job.MaxUnits)
	}
	switch has, err := q.leases.terms.Has(ctx, id[:]); {
	case err != nil:
		return nil, err
	case !has:
		return nil, asStatus(q.gone(ctx, id))
	}
	res := &workv1.QueryRootsResponse{}
	for n, i := range r.Units {
		if n > 0 && i <= r.Units[n-1] {
			return nil, status.Errorf(codes.InvalidArgument, "unit %d is asked for after unit %d: name each once, in order", i, r.Units[n-1])
		}
		roots, err := q.roots(ctx, collections.Join(id[:], i))
		if err != nil {
			return nil, err
		}
		res.Checkpoints = append(res.Checkpoints, roots)
	}
	return res, nil
}

// roots returns the checkpoints of a unit's receipt; none where there is no receipt.
func (q queryServer) roots(ctx context.Context, at part) (out workv1.Roots, err error) {
	raw, err := q.leases.units.Get(ctx, at)
	var list []byte
	if err == nil {
		list, err = q.leases.checkpoints.Get(ctx, at)
	}
	if errors.Is(err, collections.ErrNotFound) {
		return out, nil
	}
	var u job.Unit
	var all hashes
	if err := errors.Join(err, canon.Unmarshal(raw, &u), canon.Unmarshal(list, &all)); err != nil {
		return out, err
	}
	out.Attempt = uint32(u.Attempt)
	for _, h := range all {
		out.Roots = append(out.Roots, h[:]...)
	}
	return out, nil
}

func (q queryServer) Leases(ctx context.Context, r *workv1.QueryLeasesRequest) (*workv1.QueryLeasesResponse, error) {
	type byPhase = collections.Pair[int32, []byte]
	type byParty = collections.Triple[string, bool, []byte]
	var leases []workv1.Lease
	var page *query.PageResponse
	var err error
	switch {
	case r.Phase != workv1.PHASE_UNSPECIFIED && r.Participant != "":
		return nil, status.Error(codes.InvalidArgument, "ask by phase or by participant, not by both")
	case r.Participant != "":
		if _, err := address.Parse(r.Participant); err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
		within := collections.TriplePrefix[string, bool, []byte](r.Participant)
		if r.Live {
			within = collections.TripleSuperPrefix[string, bool, []byte](r.Participant, false)
		}
		leases, page, err = query.CollectionPaginate(ctx, q.leases.parties, r.Pagination,
			func(k byParty, _ collections.NoValue) (workv1.Lease, error) { return q.summary(ctx, k.K3()) },
			func(o *query.CollectionsPaginateOptions[byParty]) { o.Prefix = &within })
	case r.Phase != workv1.PHASE_UNSPECIFIED:
		leases, page, err = query.CollectionPaginate(ctx, q.leases.phases, r.Pagination,
			func(k byPhase, _ collections.NoValue) (workv1.Lease, error) { return q.summary(ctx, k.K2()) },
			query.WithCollectionPaginationPairPrefix[int32, []byte](int32(r.Phase)))
	default:
		leases, page, err = query.CollectionPaginate(ctx, q.leases.terms.Map, r.Pagination,
			func(id []byte, _ []byte) (workv1.Lease, error) { return q.summary(ctx, id) })
	}
	return &workv1.QueryLeasesResponse{Leases: leases, Pagination: page}, err
}

// summary returns a lease without units and without who was paid out of bonds, with the
// newest merge. Of one that cannot be read it says why, so that the others can be listed.
func (q queryServer) summary(ctx context.Context, raw []byte) (workv1.Lease, error) {
	id, err := canon.HashOf(raw)
	if err != nil {
		return workv1.Lease{}, err
	}
	l, err := q.load(ctx, id, func(l *job.Lease) (p job.Part) {
		if l.Round > 0 {
			p.Merges = []int{l.Round - 1}
		}
		return p
	})
	if err != nil {
		return workv1.Lease{Id: id.String(), Reason: err.Error()}, nil
	}
	return wire.LeaseToProto(id, &l.Lease), nil
}

func (q queryServer) Units(ctx context.Context, r *workv1.QueryUnitsRequest) (*workv1.QueryUnitsResponse, error) {
	id, err := canon.ParseHash(r.Order)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	var from, to int
	l, err := q.load(ctx, id, func(l *job.Lease) (p job.Part) {
		n := l.Order.Problem.Units()
		from, to = min(int(r.From), n), n
		if r.Limit > 0 {
			to = min(from+int(r.Limit), n)
		}
		for i := from; i < to; i++ {
			p.Units = append(p.Units, i)
		}
		return p
	})
	if err != nil {
		return nil, asStatus(err)
	}
	res := &workv1.QueryUnitsResponse{}
	for i := from; i < to; i++ {
		res.Units = append(res.Units, wire.UnitToProto(&l.Lease, i))
	}
	return res, nil
}

func (q queryServer) Unit(ctx context.Context, r *workv1.QueryUnitRequest) (*workv1.QueryUnitResponse, error) {
	id, err := canon.ParseHash(r.Order)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	l, err := q.load(ctx, id, func(l *job.Lease) job.Part { return l.AboutUnit(int(r.Unit)) })
	if err != nil {
		return nil, asStatus(err)
	}
	if int(r.Unit) >= len(l.Units) {
		return nil, status.Errorf(codes.NotFound, "the order has %d units, none with number %d", len(l.Units), r.Unit)
	}
	return &workv1.QueryUnitResponse{Unit: wire.UnitToProto(&l.Lease, int(r.Unit))}, nil
}

func (q queryServer) Settlement(ctx context.Context, r *workv1.QuerySettlementRequest) (*workv1.QuerySettlementResponse, error) {
	id, err := canon.ParseHash(r.Order)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	s, b, err := q.settlement(ctx, id)
	if err != nil {
		return nil, asStatus(err)
	}
	return &workv1.QuerySettlementResponse{Settlement: wire.SettlementToProto(&s), Value: b}, nil
}

func (q queryServer) Path(ctx context.Context, r *workv1.QueryPathRequest) (*workv1.QueryPathResponse, error) {
	id, err := canon.ParseHash(r.Order)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	a, err := q.record.read(ctx)
	if err != nil {
		return nil, err
	}
	if r.Count > a.N {
		return nil, status.Errorf(codes.OutOfRange, "%d orders have been settled, not %d", a.N, r.Count)
	}
	count := cmp.Or(r.Count, a.N)
	p, err := q.record.position(ctx, id, count)
	if err != nil {
		return nil, asStatus(err)
	}
	out := &workv1.QueryPathResponse{Index: p.Index, Count: count}
	for _, h := range p.Path {
		out.Path = append(out.Path, h[:])
	}
	return out, nil
}

func (q queryServer) Params(ctx context.Context, _ *workv1.QueryParamsRequest) (*workv1.QueryParamsResponse, error) {
	p, err := q.rules.Get(ctx)
	if err != nil {
		return nil, err
	}
	authority, err := q.rules.Authority(ctx)
	if err != nil {
		return nil, err
	}
	return &workv1.QueryParamsResponse{Params: p, Authority: authority, Pool: q.Pool(ctx)}, err
}

func asStatus(err error) error {
	if errors.Is(err, ErrNoLease) || errors.Is(err, ErrPruned) {
		return status.Error(codes.NotFound, err.Error())
	}
	return err
}
