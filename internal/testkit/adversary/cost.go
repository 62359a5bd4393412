package adversary

import (
	"fmt"
	"runtime/metrics"
	"slices"

	sdk "github.com/cosmos/cosmos-sdk/types"
)

// costs compares what messages take of a validator with the gas that is paid for it.
// What they take is measured in bytes allocated, which do not depend on the machine:
// whoever copies much also computes much.
type costs struct {
	ratios []float64 // bytes for each unit of gas, of the first messages
	median float64
	read   []metrics.Sample
}

const (
	sampled = 1 << 10 // messages from which the median follows
	above   = 16      // times the median that a message may take
	least   = 4 << 20 // bytes below which nothing is too much
)

// allocated returns the bytes that this process has allocated.
func (c *costs) allocated() uint64 {
	if c.read == nil {
		c.read = []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	}
	metrics.Read(c.read)
	return c.read[0].Value.Uint64()
}

// measure compares one message with the others.
func (p *play) measure(op Op, m sdk.Msg, gas, bytes uint64) {
	c := &p.costs
	if !p.Costs {
		return
	}
	gas = max(gas, 1000) // what a signature costs
	ratio := float64(bytes) / float64(gas)
	if len(c.ratios) < sampled {
		if c.ratios = append(c.ratios, ratio); len(c.ratios) == sampled {
			s := slices.Clone(c.ratios)
			slices.Sort(s)
			c.median = s[len(s)/2]
		}
		return
	}
	if bytes < least || ratio < above*c.median {
		return
	}
	ctx, _ := p.block.CacheContext() // again: what others allocate is in the first figure
	begun := c.allocated()
	_ = p.handle(ctx, m)
	bytes = min(bytes, c.allocated()-begun)
	if ratio = float64(bytes) / float64(gas); bytes >= least && ratio >= above*c.median {
		p.fail("cost", "%s takes far more of a validator than its gas", op.Msg)
		p.found.Detail += fmt.Sprintf(" (%d bytes for %d gas, %.0f times the median)", bytes, gas, ratio/c.median)
	}
}
