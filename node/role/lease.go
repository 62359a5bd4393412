package role

import (
	"context"
	"fmt"

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

// Live returns the leases that are not settled: all, or those in which account
// takes part.
func (k *Kit) Live(ctx context.Context, account string) ([]*job.Lease, error) {
	var out []*job.Lease
	for _, q := range liveQueries(account) {
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
				if err != nil {
					return nil, err
				}
				out = append(out, l)
			}
			if r.Pagination == nil || len(r.Pagination.NextKey) == 0 {
				break
			}
			q.Pagination = next(r.Pagination)
		}
	}
	return out, nil
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
