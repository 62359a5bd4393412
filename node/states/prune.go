package states

import (
	"cmp"
	"context"
	"time"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/leases"
	"github.com/tally-network/tally/store"
)

// KeepEnded is how long the blobs of a lease are kept after it is settled, unless somebody says
// otherwise: the consumer must have time to fetch its result.
const KeepEnded = 15 * time.Minute

// Pruner lets go of what is loaded for a lease once it is settled, of its blobs some time later, and before that of the
// checkpoints that the role's policy does not keep.
type Pruner struct {
	states *Holder
	keep   int64 // ms
	forget func(order canon.Hash) error
	gone   map[canon.Hash]int64        // since when an order that is kept has no live lease, ms
	pruned map[canon.Hash]map[int]bool // units whose checkpoints were pruned, by order
	idle   map[canon.Hash]uint64       // the height of a lease of which nothing was left to prune
	turn   int                         // blocks seen
}

// someUnits is how many units of a lease are pruned in a block. Where fragments are kept, as
// many more are looked at again: making a fragment fetches the whole once more.
const someUnits = 64

// NewPruner returns a pruner, which calls forget for a lease that is to be let go of.
func NewPruner(h *Holder, forget func(order canon.Hash) error) *Pruner {
	return &Pruner{states: h, keep: cmp.Or(h.Ended, KeepEnded.Milliseconds()), forget: forget, gone: map[canon.Hash]int64{}}
}

// Block compares what is kept with the leases that live at protocol time now.
func (p *Pruner) Block(ctx context.Context, now int64, live []leases.Lease) error {
	alive := map[canon.Hash]bool{}
	for _, l := range live {
		alive[l.Order.ID()] = true
	}
	if err := p.prune(ctx, live); err != nil {
		return err
	}
	kept, err := p.states.Blobs.Orders()
	if err != nil {
		return err
	}
	for _, order := range kept {
		if !alive[order] && !p.states.Leases.Unread(order) {
			p.states.Jobs.Forget(order) // blobs stay longer: they take no memory
		}
		since, seen := p.gone[order]
		switch {
		case alive[order]:
			delete(p.gone, order)
		case !seen:
			p.gone[order] = now
		case now-since > p.keep && !p.states.Leases.Unread(order):
			if err := p.forget(order); err != nil {
				return err
			}
			delete(p.gone, order)
		}
	}
	return nil
}

// prune lets go of checkpoints that are not kept any more.
func (p *Pruner) prune(ctx context.Context, live []leases.Lease) error {
	p.turn++
	pruned, idle := map[canon.Hash]map[int]bool{}, map[canon.Hash]uint64{}
	more := false
	for _, l := range live {
		id := l.Order.ID()
		done := p.pruned[id]
		if done == nil {
			done = map[int]bool{}
		}
		pruned[id] = done
		if at, ok := p.idle[id]; ok && at == l.Changed && !l.Order.Fragments().Cuts() {
			idle[id] = l.Changed
			continue
		}
		units := p.due(l.Lease, done)
		some, err := p.states.pruneUnits(ctx, l.Lease, units)
		more = more || some
		if err != nil { // it keeps nobody from the others
			p.states.Log.Warn("checkpoints that are not kept any more stay", "order", id, "error", err)
			continue
		}
		if len(units) < someUnits {
			idle[id] = l.Changed
		}
		for _, i := range units {
			done[i] = true
		}
	}
	p.pruned, p.idle = pruned, idle
	if !more {
		return nil
	}
	_, err := p.states.Store.GC()
	return err
}

// due returns the units of a lease to be pruned now, and forgets of those whose
// checkpoints are kept again that they were.
func (p *Pruner) due(l *job.Lease, done map[int]bool) (out []int) {
	part := p.turn % (len(l.Units)/someUnits + 1)
	for i := range l.Units {
		policy := p.states.policy(l, i)
		switch {
		case policy.keeps(1, 2): // all
			delete(done, i)
		case !done[i] && len(out) < someUnits, policy == fragments && i/someUnits == part:
			out = append(out, i)
		}
	}
	return out
}

// pruneUnits lets go of the checkpoints of some units that are not kept here, and reports
// whether there were any.
func (h *Holder) pruneUnits(ctx context.Context, l *job.Lease, units []int) (some bool, err error) {
	if l, err = h.Leases.Fill(ctx, l, job.Part{Units: units}); err != nil {
		return false, err
	}
	for _, i := range units {
		more, err := h.prune(l, l.Units[i].Receipt, h.policy(l, i))
		if err != nil {
			return some, err
		}
		some = some || more
	}
	return some, nil
}

// prune lets go of the checkpoints of a unit that a policy does not keep, and reports
// whether there were any.
func (h *Holder) prune(l *job.Lease, r *job.Receipt, policy Policy) (some bool, err error) {
	var gone []store.Ref
	for i, root := range r.Checkpoints {
		if policy.keeps(i, len(r.Checkpoints)-1) {
			continue
		}
		if ref, ok := h.noted(l.Order.ID(), root); ok && h.Store.Has(ref) {
			gone = append(gone, ref)
		}
	}
	if len(gone) == 0 {
		return false, nil
	}
	return true, h.Store.Unpin(blobs.Pin(l.Order.ID()), gone...)
}
