package work

import (
	"context"
	"errors"
	"math"

	"cosmossdk.io/collections"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/core/canon"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// noteChange enters a lease as changed in this block: once, in place of what it was entered as before.
func (s *leaseStore) noteChange(ctx context.Context, id canon.Hash, settled bool) error {
	height := uint64(sdk.UnwrapSDKContext(ctx).BlockHeight())
	was, err := s.changed.Get(ctx, id[:])
	switch {
	case errors.Is(err, collections.ErrNotFound): // it is new
		err = s.changes.Set(ctx, collections.Join(height, id[:]))
	case err == nil && was != height:
		err = errors.Join(s.changes.Remove(ctx, collections.Join(was, id[:])), s.changes.Set(ctx, collections.Join(height, id[:])))
	case err == nil && !settled:
		return nil
	}
	if settled {
		return errors.Join(err, s.changed.Remove(ctx, id[:]), s.retire(ctx, id, height))
	}
	return errors.Join(err, s.changed.Set(ctx, id[:], height))
}

// forgetChange removes a settled lease that changed at a height.
func (s *leaseStore) forgetChange(ctx context.Context, id canon.Hash, height uint64) error {
	reaches, err := s.changesReach(ctx)
	if err == nil && height > reaches {
		err = s.reaches.Set(ctx, height)
	}
	return errors.Join(err, s.changes.Remove(ctx, collections.Join(height, id[:])))
}

// changesReach returns the height since which no lease that changed is missing.
func (s *leaseStore) changesReach(ctx context.Context) (uint64, error) {
	h, err := s.reaches.Get(ctx)
	if errors.Is(err, collections.ErrNotFound) {
		return 0, nil
	}
	return h, err
}

// maxScanned is how many leases one answer looks at, whoever takes part in them.
const maxScanned = 1000

// Changed answers with what changed since a height, the longest unchanged first. A lease that changes while
// somebody reads page after page is met again further on, and never missed.
func (q queryServer) Changed(ctx context.Context, r *workv1.QueryChangedRequest) (*workv1.QueryChangedResponse, error) {
	if r.Participant != "" {
		if _, err := address.Parse(r.Participant); err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
	}
	reaches, err := q.leases.changesReach(ctx)
	if err != nil {
		return nil, err
	}
	if r.Since < reaches {
		return nil, status.Errorf(codes.OutOfRange, "what changed since block %d is not known any more, but since block %d: read all live leases first", r.Since, reaches)
	}
	from := new(collections.Range[collections.Pair[uint64, []byte]])
	switch {
	case len(r.Next) > 0:
		_, last, err := q.leases.changes.KeyCodec().Decode(r.Next)
		if err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "next: %s", err)
		}
		from = from.StartExclusive(last)
	case r.Since == math.MaxUint64:
		return nil, status.Errorf(codes.InvalidArgument, "there is no block after %d", r.Since)
	default:
		from = from.StartInclusive(collections.Join(r.Since+1, []byte{}))
	}
	out := &workv1.QueryChangedResponse{Height: uint64(sdk.UnwrapSDKContext(ctx).BlockHeight())}
	scanned := 0
	var last collections.Pair[uint64, []byte]
	err = q.leases.changes.Walk(ctx, from, func(at collections.Pair[uint64, []byte]) (bool, error) {
		last = at
		scanned++
		lease, err := q.changedLease(ctx, at, r.Participant)
		if lease != nil {
			out.Leases = append(out.Leases, *lease)
		}
		return scanned == maxScanned, err
	})
	if err == nil && scanned == maxScanned {
		out.Next, err = collections.EncodeKeyWithPrefix(nil, q.leases.changes.KeyCodec(), last)
	}
	return out, err
}

// changedLease returns a lease that changed; nil, if an account takes no part in it.
func (q queryServer) changedLease(ctx context.Context, at collections.Pair[uint64, []byte], account string) (*workv1.ChangedLease, error) {
	id, err := canon.HashOf(at.K2())
	if err != nil {
		return nil, err
	}
	live, err := q.leases.changed.Has(ctx, id[:])
	if err == nil && account != "" {
		var part bool
		if part, err = q.leases.parties.Has(ctx, collections.Join3(account, !live, id[:])); !part {
			return nil, err
		}
	}
	return &workv1.ChangedLease{Order: id.String(), Changed: at.K1(), Settled: !live}, err
}
