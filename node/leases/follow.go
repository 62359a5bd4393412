package leases

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/core/canon"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// view is which leases live at a height, of one account or all, and when each changed last.
type view struct {
	height uint64
	live   map[canon.Hash]uint64
}

// leasesAtOnce is how many live leases a reply names.
const leasesAtOnce = 1000

// follow returns the leases that live, and when each changed last. It asks what has changed since it
// asked last; the first time, and if it was away for so long that the chain cannot tell, for all.
// f.cache.mu is held.
func (f *Follower) follow(ctx context.Context, account string) (map[canon.Hash]uint64, error) {
	if v := f.views[account]; v != nil {
		caughtUp, err := v.catchUp(ctx, workv1.NewQueryClient(f.Chain.Conn), account)
		if err != nil {
			return nil, err
		}
		if caughtUp {
			return v.live, nil
		}
	}
	v, err := list(ctx, workv1.NewQueryClient(f.Chain.Conn), account)
	if err != nil {
		return nil, err
	}
	if f.views == nil {
		f.views = map[string]*view{}
	}
	f.views[account] = v
	return v.live, nil
}

// catchUp enters what has changed. It reports whether it could: a chain forgets, and a node that has
// gone back knows less than before.
func (v *view) catchUp(ctx context.Context, chain workv1.QueryClient, account string) (bool, error) {
	q := &workv1.QueryChangedRequest{Since: v.height, Participant: account}
	for {
		r, err := chain.Changed(ctx, q)
		switch {
		case status.Code(err) == codes.OutOfRange:
			return false, nil
		case err != nil:
			return false, fmt.Errorf("changed leases: %w", err)
		case r.Height < v.height:
			return false, nil
		}
		for _, x := range r.Leases {
			id, err := canon.ParseHash(x.Order)
			if err != nil {
				return false, err
			}
			if x.Settled {
				delete(v.live, id)
			} else {
				v.live[id] = x.Changed
			}
		}
		if len(r.Next) == 0 {
			v.height = r.Height
			return true, nil
		}
		q.Next = r.Next
	}
}

// list reads all leases that live. What changes meanwhile is met again from the height on of which the
// first page is.
func list(ctx context.Context, chain workv1.QueryClient, account string) (*view, error) {
	v := &view{live: map[canon.Hash]uint64{}}
	q := &workv1.QueryLiveRequest{Participant: account, Pagination: &query.PageRequest{Limit: leasesAtOnce}}
	for first := true; ; first = false {
		r, err := chain.Live(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("live leases: %w", err)
		}
		if first {
			v.height = r.Height
		}
		for _, x := range r.Leases {
			id, err := canon.ParseHash(x.Order)
			if err != nil {
				return nil, err
			}
			v.live[id] = x.Changed
		}
		if r.Pagination == nil || len(r.Pagination.NextKey) == 0 {
			return v, nil
		}
		q.Pagination = &query.PageRequest{Key: r.Pagination.NextKey, Limit: leasesAtOnce}
	}
}
