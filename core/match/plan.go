package match

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/tally-network/tally/core/money"
)

// Plan is the work of an order, as far as time goes.
type Plan struct {
	Rounds, Shards int
	UnitFLOPs      uint64
	Ahead          int   // rounds that work may be ahead of those whose windows are over
	Window         int64 // ms that a unit's window takes
}

// Suffices returns an error that says what a team lacks whose members were measured at these speeds.
func (n *Needs) Suffices(p Plan, speeds []uint64) error {
	if n.Throughput > 0 {
		together := uint64(0)
		for _, v := range speeds {
			together += min(v, math.MaxUint64-together)
		}
		if together < n.Throughput {
			return fmt.Errorf("throughput: the order wants %d GFLOP/s, its providers were measured at %d together", n.Throughput/giga, together/giga)
		}
	}
	if n.Deadline == 0 {
		return nil
	}
	takes, ok := p.Takes(speeds)
	switch {
	case !ok:
		return fmt.Errorf("deadline: none of its providers was measured at any speed")
	case takes > uint64(n.Deadline):
		return fmt.Errorf("deadline: its providers take %d ms at the speeds that they were measured at, the order gives %d", takes, n.Deadline)
	}
	return nil
}

// Takes returns for how many ms members of these speeds (FLOP/s) compute; ok is false if none has any.
//
//	t      = the least with Σ ⌊t · speed / (1000 · unit FLOPs)⌋ ≥ shards        units are not divided
//	takes  = rounds · t + ⌊(rounds − 1) / (ahead + 1)⌋ · window
//
// A time beyond what can be counted is the largest number.
func (p Plan) Takes(speeds []uint64) (ms uint64, ok bool) {
	fastest := uint64(0)
	for _, v := range speeds {
		fastest = max(fastest, v)
	}
	if fastest == 0 {
		return 0, false
	}
	t := p.round(speeds, fastest)
	waits := uint64(p.Rounds-1) / uint64(p.Ahead+1)
	ms, ok = t, t < math.MaxUint64
	hi, work := bits.Mul64(uint64(p.Rounds), ms)
	over, pause := bits.Mul64(waits, uint64(p.Window))
	all, carry := bits.Add64(work, pause, 0)
	if !ok || hi|over|carry != 0 {
		return math.MaxUint64, true
	}
	return all, true
}

// round returns the ms of a round: by halves, for more time never completes fewer units.
func (p Plan) round(speeds []uint64, fastest uint64) uint64 {
	done := func(t uint64) bool {
		left := uint64(p.Shards)
		for _, v := range speeds {
			units := money.ScaleClamped(t, v, 1000) / max(p.UnitFLOPs, 1)
			if units >= left {
				return true
			}
			left -= units
		}
		return left == 0
	}
	low, high := uint64(0), alone(p, fastest) // not done, done
	for high < math.MaxUint64 && low+1 < high {
		if mid := low + (high-low)/2; done(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

// alone returns the ms that one provider takes for all units of a round.
func alone(p Plan, speed uint64) uint64 {
	hi, work := bits.Mul64(p.UnitFLOPs, uint64(p.Shards))
	if hi != 0 {
		return math.MaxUint64
	}
	hi, lo := bits.Mul64(work, 1000)
	if hi >= speed {
		return math.MaxUint64
	}
	q, _ := bits.Div64(hi, lo, speed)
	return q + min(1, math.MaxUint64-q)
}
