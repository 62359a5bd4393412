package role

import (
	"strings"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
)

// keepFor is how long, in ms of block time, the blobs of a lease are kept after
// it is settled: the consumer must have time to fetch its result.
const keepFor = 15 * 60 * 1000

// Keep lets go of leases some time after they are settled.
type Keep struct {
	kit  *Kit
	gone map[string]int64 // since when a pin has no live lease, ms
}

// NewKeep returns an empty Keep.
func (k *Kit) NewKeep() *Keep { return &Keep{k, map[string]int64{}} }

// Block compares what is kept with the leases that live at block time now.
func (c *Keep) Block(now int64, live []*job.Lease) error {
	alive := map[string]bool{}
	for _, l := range live {
		alive[Pin(l.Order.ID())] = true
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
			if err := c.kit.Forget(order); err != nil {
				return err
			}
			delete(c.gone, pin)
		}
	}
	return nil
}
