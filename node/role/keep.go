package role

import (
	"context"
	"strings"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
)

// keepFor is how long, in ms of block time, the blobs of a lease are kept after
// it is settled: the consumer must have time to fetch its result.
const keepFor = 15 * 60 * 1000

// Keep lets go of leases some time after they are settled, and before that of the
// checkpoints that the role's policy does not keep.
type Keep struct {
	kit     *Kit
	gone    map[string]int64            // since when a pin has no live lease, ms
	thinned map[canon.Hash]map[int]bool // units whose checkpoints were thinned, by order
	pruned  map[canon.Hash]uint64       // the height of a lease of which nothing was left to thin
	turn    int                         // blocks seen
}

// someUnits is how many units of a lease are thinned in a block. Where fragments are kept, as
// many more are looked at again: making a fragment fetches the whole once more.
const someUnits = 64

// NewKeep returns an empty Keep.
func (k *Kit) NewKeep() *Keep {
	return &Keep{kit: k, gone: map[string]int64{}}
}

// Block compares what is kept with the leases that live at block time now.
func (c *Keep) Block(ctx context.Context, now int64, live []Lease) error {
	alive := map[string]bool{}
	for _, l := range live {
		alive[Pin(l.Order.ID())] = true
	}
	if err := c.thin(ctx, live); err != nil {
		return err
	}
	for _, pin := range c.kit.Store.Pins() {
		hex, ok := strings.CutPrefix(pin, pinPrefix)
		if !ok || alive[pin] {
			delete(c.gone, pin)
			continue
		}
		if since, seen := c.gone[pin]; !seen {
			c.gone[pin] = now
		} else if now-since > keepFor {
			order, err := canon.ParseHash(hex)
			if err != nil {
				return err
			}
			if c.kit.unread.has(order) {
				continue // who knows what it asks of us
			}
			if err := c.kit.Forget(order); err != nil {
				return err
			}
			delete(c.gone, pin)
		}
	}
	return nil
}

// thin lets go of checkpoints that are not kept any more.
func (c *Keep) thin(ctx context.Context, live []Lease) error {
	c.turn++
	thinned, pruned := map[canon.Hash]map[int]bool{}, map[canon.Hash]uint64{}
	more := false
	for _, l := range live {
		id := l.Order.ID()
		done := c.thinned[id]
		if done == nil {
			done = map[int]bool{}
		}
		thinned[id] = done
		if at, ok := c.pruned[id]; ok && at == l.Changed && !l.Order.Fragments().Cuts() {
			pruned[id] = l.Changed
			continue
		}
		units := c.toThin(l.Lease, done)
		some, err := c.kit.thinUnits(ctx, l.Lease, units)
		more = more || some
		if err != nil { // it keeps nobody from the others
			c.kit.Log.Warn("checkpoints that are not kept any more stay", "order", id, "error", err)
			continue
		}
		if len(units) < someUnits {
			pruned[id] = l.Changed
		}
		for _, i := range units {
			done[i] = true
		}
	}
	c.thinned, c.pruned = thinned, pruned
	if !more {
		return nil
	}
	_, err := c.kit.Store.GC()
	return err
}

// toThin returns the units of a lease to be thinned now, and forgets of those whose
// checkpoints are kept again that they were.
func (c *Keep) toThin(l *job.Lease, done map[int]bool) (out []int) {
	part := c.turn % (len(l.Units)/someUnits + 1)
	for i := range l.Units {
		policy := c.kit.policy(l, i)
		switch {
		case policy.keeps(1, 2): // all
			delete(done, i)
		case !done[i] && len(out) < someUnits, policy == fragments && i/someUnits == part:
			out = append(out, i)
		}
	}
	return out
}
