package adversary

import (
	"fmt"
	"runtime/metrics"
	"slices"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/internal/cputime"
)

// costs compares what messages take of a validator with the gas that is paid for it:
// bytes allocated, and time.
type costs struct {
	bytes, time scale
	read        []metrics.Sample
}

// scale compares messages with one another in one measure.
type scale struct {
	ratios []float64 // for each unit of gas, of the first messages
	median float64
}

const (
	sampled   = 1 << 10 // messages from which the median follows
	above     = 16      // times the median of bytes that a message may allocate
	longer    = 64      // times the median time that a message may take
	leastSize = 4 << 20 // bytes below which nothing is too much
	leastTime = 50 * time.Millisecond
	blockGas  = 10 * app.MaxGas // of the messages in a block
)

// times returns how many times the median something is, 0 while there is none.
func (s *scale) times(ratio float64) float64 {
	if len(s.ratios) < sampled {
		if s.ratios = append(s.ratios, ratio); len(s.ratios) == sampled {
			sorted := slices.Sorted(slices.Values(s.ratios))
			s.median = sorted[len(sorted)/2]
		}
		return 0
	}
	return ratio / s.median
}

// allocated returns the bytes that this process has allocated.
func (c *costs) allocated() uint64 {
	if c.read == nil {
		c.read = []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	}
	metrics.Read(c.read)
	return c.read[0].Value.Uint64()
}

// measure compares one message with the others.
func (p *play) measure(op Op, m sdk.Msg, gas, bytes uint64, took time.Duration) {
	c := &p.costs
	if !p.Costs {
		return
	}
	paid := float64(max(gas, 1000)) // what a signature costs
	large := c.bytes.times(float64(bytes)/paid) >= above && bytes >= leastSize
	slow := c.time.times(float64(took)/paid) >= longer && took >= leastTime
	if !large && !slow {
		return
	}
	for range 3 { // again: what others do is in the first figures
		begun, at := c.allocated(), cputime.Used()
		p.time(m)
		took, bytes = min(took, cputime.Used()-at), min(bytes, c.allocated()-begun)
	}
	switch n, k := float64(bytes)/paid/c.bytes.median, float64(took)/paid/c.time.median; {
	case n >= above && bytes >= leastSize:
		p.fail("cost", "%s takes far more of a validator than its gas", op.Msg)
		p.found.Detail += fmt.Sprintf(" (%d bytes for %d gas, %.0f times the median)", bytes, gas, n)
	case k >= longer && took >= leastTime:
		p.fail("cost", "%s takes far longer than its gas pays for", op.Msg)
		p.found.Detail += fmt.Sprintf(" (%v for %d gas, %.0f times the median)", took.Round(time.Millisecond), gas, k)
	}
}

// measureEnd compares what the end of a block takes, by which ctx may be ended again,
// with what messages take that fill a block. No message pays for it.
func (p *play) measureEnd(took time.Duration, ctx sdk.Context) {
	full := time.Duration(p.costs.time.median * blockGas)
	if !p.Costs || full == 0 || took <= full {
		return
	}
	for range 3 { // again: others may have had the processor
		branch, _ := ctx.CacheContext()
		begun := cputime.Used()
		if _, err := p.ModuleManager.EndBlock(branch); err != nil {
			return // the first time it went well
		}
		took = min(took, cputime.Used()-begun)
	}
	if took > full {
		p.fail("cost", "the end of a block takes longer than a block full of messages")
		p.found.Detail += fmt.Sprintf(" (%v, not %v)", took.Round(time.Millisecond), full.Round(time.Millisecond))
	}
}
