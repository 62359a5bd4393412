package role

import (
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
	turn    int                         // blocks seen
}

// someUnits are looked at again in each block where pieces are kept: what makes a
// piece brings the whole here, perhaps after it was let go of.
const someUnits = 64

// NewKeep returns an empty Keep.
func (k *Kit) NewKeep() *Keep {
	return &Keep{kit: k, gone: map[string]int64{}, thinned: map[canon.Hash]map[int]bool{}}
}

// Block compares what is kept with the leases that live at block time now.
func (c *Keep) Block(now int64, live []*job.Lease) error {
	alive := map[string]bool{}
	for _, l := range live {
		alive[Pin(l.Order.ID())] = true
	}
	if err := c.thin(live); err != nil {
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

// thin lets go of checkpoints that are not kept any more since the last block.
func (c *Keep) thin(live []*job.Lease) error {
	before := c.thinned
	c.turn++
	c.thinned = map[canon.Hash]map[int]bool{}
	more := false
	for _, l := range live {
		id, done := l.Order.ID(), map[int]bool{}
		c.thinned[id] = done
		for i := range l.Units {
			policy := c.kit.policy(l, i)
			if policy.keeps(1, 2) { // all
				continue
			}
			if !before[id][i] || policy == pieces && i/someUnits == c.turn%(len(l.Units)/someUnits+1) {
				some, err := c.kit.thin(l, l.Units[i].Receipt, policy)
				if err != nil {
					return err
				}
				more = more || some
			}
			done[i] = true
		}
	}
	if !more {
		return nil
	}
	_, err := c.kit.Store.GC()
	return err
}
