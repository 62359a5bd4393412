package lead

import (
	"context"
	"slices"

	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// giveOut gives out as many open units of the round as there are providers for. Who computes them is
// drawn in a later block.
func (d *lead) giveOut(ctx context.Context, l *job.Lease) error {
	var out []workv1.Assignment
	for _, i := range placeable(l) {
		out = append(out, workv1.Assignment{Unit: uint32(i), Attempt: uint32(l.Units[i].Attempt)})
	}
	if len(out) == 0 {
		return nil
	}
	return d.post(ctx, l, out)
}

// placeable returns the open units of the round whose places can be filled beside those that are
// under way.
func placeable(l *job.Lease) (units []int) {
	n, filled := l.Order.Conditions.Replicas, len(computing(l))
	able := job.Owners(slices.DeleteFunc(slices.Clone(l.Providers), func(p job.Party) bool { return !l.MayWork(p.Account) })) // a unit's replicas are of different owners
	for _, u := range l.RoundUnits() {
		if u.Status == job.Assigned && len(u.Replicas) == 0 {
			filled += n // they are drawn in the next block
		}
	}
	for s, u := range l.RoundUnits() { // however places were drawn, so many have as much as they may
		if u.Status == job.Open && able-filled/l.Params.MaxOpen >= n {
			units, filled = append(units, l.Unit(l.Round, s)), filled+n
		}
	}
	return units
}

// computing returns who has a place in a unit of the round and has not committed yet.
func computing(l *job.Lease) (out []string) {
	for _, u := range l.RoundUnits() {
		for _, r := range u.Replicas {
			if u.Status == job.Assigned && r.Commit.IsZero() {
				out = append(out, r.Provider)
			}
		}
	}
	return out
}

// providersOf returns who was given units.
func providersOf(taken []workv1.Assignment) (out []string) {
	for _, a := range taken {
		if a.Provider != "" {
			out = append(out, a.Provider)
		}
	}
	return out
}
