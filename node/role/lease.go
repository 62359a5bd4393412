package role

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// Lease returns a lease as the chain has it, with its units.
func (k *Kit) Lease(ctx context.Context, order canon.Hash) (*job.Lease, error) {
	r, err := workv1.NewQueryClient(k.Chain.Conn).State(ctx, &workv1.QueryStateRequest{Order: order.String()})
	if err != nil {
		return nil, fmt.Errorf("lease of order %s: %w", order.Short(), err)
	}
	l := &job.Lease{}
	if err := canon.Unmarshal(r.Lease, l); err != nil {
		return nil, fmt.Errorf("lease of order %s: %w", order.Short(), err)
	}
	if p := &l.Order.Problem; l.Order.ID() != order || len(l.Units) != p.Units() || len(l.Merges) != p.Rounds {
		return nil, fmt.Errorf("the node answered with another lease than that of order %s", order.Short())
	}
	return l, nil
}

// leasesAtOnce is how many leases, each of up to two thousand parties, a reply holds.
const leasesAtOnce = 32

// Live returns the leases that are not settled: all, or those in which account
// takes part. One that cannot be read is left out and told of, so it keeps nobody
// from the others; an error means that the chain cannot be asked.
func (k *Kit) Live(ctx context.Context, account string) ([]*job.Lease, error) {
	var out []*job.Lease
	for _, q := range liveQueries(account) {
		q.Pagination = &query.PageRequest{Limit: leasesAtOnce}
		for {
			r, err := workv1.NewQueryClient(k.Chain.Conn).Leases(ctx, q)
			if err != nil {
				return nil, fmt.Errorf("live leases: %w", err)
			}
			for _, brief := range r.Leases {
				id, err := canon.ParseHash(brief.Id)
				if err != nil {
					return nil, err
				}
				l, err := k.Lease(ctx, id)
				if unanswered(err) {
					return nil, err
				}
				if k.unread.note(id, err) {
					k.Log.Warn("left aside", "order", id, "error", err)
					k.Emit(Event{Kind: Trouble, Order: id, Unit: -1, Text: err.Error()})
				}
				if err == nil {
					out = append(out, l)
				}
			}
			if r.Pagination == nil || len(r.Pagination.NextKey) == 0 {
				break
			}
			q.Pagination = &query.PageRequest{Key: r.Pagination.NextKey, Limit: leasesAtOnce}
		}
	}
	return out, nil
}

// unanswered reports whether an error says that a node did not answer, and nothing
// about what was asked for.
func unanswered(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return true
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// unread are the orders whose leases could not be read when last asked for, and why.
type unread struct {
	mu  sync.Mutex
	why map[canon.Hash]string
}

// note remembers whether a lease could be read, and reports whether there is
// trouble that was not known before.
func (u *unread) note(order canon.Hash, err error) (news bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err == nil {
		delete(u.why, order)
		return false
	}
	if u.why == nil {
		u.why = map[canon.Hash]string{}
	}
	news = u.why[order] != err.Error()
	u.why[order] = err.Error()
	return news
}

// has reports whether the lease of an order could not be read.
func (u *unread) has(order canon.Hash) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.why[order] != ""
}

func liveQueries(account string) []*workv1.QueryLeasesRequest {
	if account != "" {
		return []*workv1.QueryLeasesRequest{{Participant: account, Live: true}}
	}
	var out []*workv1.QueryLeasesRequest
	for _, p := range []workv1.Phase{workv1.PHASE_ACTIVE, workv1.PHASE_STOPPING, workv1.PHASE_CLOSING} {
		out = append(out, &workv1.QueryLeasesRequest{Phase: p})
	}
	return out
}
