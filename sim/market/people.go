package market

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/match"
	"github.com/tally-network/tally/core/power"
)

// Tiers are those of a new chain, and the kinds of capacity that clearings sell.
var Tiers = match.Tiers{{Label: "A", Speed: 20e12}, {Label: "B", Speed: 5e12}, {Label: "C", Speed: 0}}

const giga = 1_000_000_000

// How a provider asks.
const (
	truthful = iota // what its work costs it
	learns          // more after it has sold, less after it has not
	greedy          // twice what its work costs it
	manners
)

var mannerNames = [manners]string{"truthful", "learning", "greedy"}

// provider is somebody who computes.
type provider struct {
	cost, ask uint64 // utally for 10⁹ FLOP
	speed     uint64 // FLOP/s, truly
	pace      match.Pace
	record    power.Record
	flops     uint64 // credited in this hour
	earned    uint64 // utally
	spent     uint64 // utally that its work has cost it
	free      int64  // protocol time in ms from which it has nothing to do
	validator int32
	tier      uint8 // of its measured speed
	kind      uint8 // tier as which it sells capacity: its own, or a slower one
	manner    uint8
	sold      bool // since the last clearing
	gone      bool
}

// validator leads leases of the providers under it.
type validator struct {
	name   string
	fee    uint64 // bps
	since  int64
	team   []int32 // providers by what they ask
	asked  int     // clearing after which they were put in order
	earned uint64
}

// people are all who take part.
type people struct {
	providers  []provider
	validators []validator
}

// perValidator is how many providers a validator has on average: a block of a chain looks at 2,048 of them.
const perValidator = 400

func newPeople(n int, r *rand.Rand) *people {
	p := &people{providers: make([]provider, n), validators: make([]validator, max(3, n/perValidator))}
	for i := range p.validators {
		p.validators[i] = validator{name: fmt.Sprintf("validator-%06d", i), fee: 300 + 50*r.Uint64N(11), since: int64(i), asked: -1}
	}
	for i := range p.providers {
		p.join(int32(i), r)
	}
	return p
}

// join puts somebody new in a place: a slow machine, mostly, and dearer for each operation the slower it is. What people ask
// at first is arbitrary.
func (p *people) join(i int32, r *rand.Rand) {
	x := &p.providers[i]
	earned := *x
	*x = provider{validator: int32(r.IntN(len(p.validators))), kind: uint8(len(Tiers) - 1)}
	x.earned, x.spent, x.record, x.flops = earned.earned, earned.spent, earned.record, earned.flops // of whoever was here before, so that sums are right
	switch n := r.IntN(100); {
	case n < 4:
		x.speed = 20e12 + r.Uint64N(40e12)
	case n < 24:
		x.speed = 5e12 + r.Uint64N(15e12)
	default:
		x.speed = 2e11 + r.Uint64N(48e11)
	}
	efficient := 1 + 0.2*math.Log10(5e12/float64(x.speed))
	x.cost = uint64(700 * efficient * math.Exp(0.25*r.NormFloat64()))
	x.ask = uint64(float64(x.cost) * (1 + 1.5*r.Float64()))
	switch n := r.IntN(10); {
	case n < 3:
		x.manner, x.ask = truthful, x.cost
	case n < 9:
		x.manner = learns
	default:
		x.manner, x.ask = greedy, 2*x.cost
	}
	x.pace = match.Pace{Probed: x.speed} // before it comes
	x.setTier()
	x.kind = x.tier
	v := &p.validators[x.validator]
	v.team, v.asked = append(v.team, i), -1
}

func (x *provider) setTier() {
	x.tier = uint8(len(Tiers) - 1)
	for k, t := range Tiers {
		if x.pace.Speed() >= t.Speed {
			x.tier = uint8(k)
			break
		}
	}
	x.kind = max(x.kind, x.tier)
}

// leave takes somebody out of the team that it was in.
func (p *people) leave(i int32) {
	x := &p.providers[i]
	x.gone = true
	v := &p.validators[x.validator]
	for at, m := range v.team {
		if m == i {
			v.team[at] = v.team[len(v.team)-1]
			v.team, v.asked = v.team[:len(v.team)-1], -1
			break
		}
	}
}

// order is what somebody wants computed.
type order struct {
	job.Order
	value  uint64 // utally that all of it is worth to its consumer
	shades bool   // it bids less
	kind   uint8  // slowest tier that may compute it
	at     int64  // when it is tried next
	delay  int64
	age    uint32 // clearings that it has lost
	posted int64
}

// gflop is what an order demands, in 10⁹ FLOP.
func (o *order) gflop() uint64 { return o.Problem.UnitFLOPs() / giga * uint64(o.Problem.Units()) }

// shaded is what part of its value a consumer bids that shades, in percent.
const shaded = 85

// newOrder draws an order of about so many 10⁹ FLOP, worth about so many utally each.
func newOrder(number uint64, gflop, worth float64, lease bool, r *rand.Rand) *order {
	o := &order{shades: r.IntN(5) == 0}
	size := gflop * math.Exp(r.NormFloat64()-0.5)
	binary.BigEndian.PutUint64(o.Problem.Data[:], number)
	o.Nonce, o.Problem.Seed = number, number
	p, c := &o.Problem, &o.Conditions
	p.Kind, p.Rounds, p.Shards, p.Steps, p.Interval, p.Batch, p.StateBytes = job.Batch, 1, 1+r.IntN(16), 8, 2, 1, 1e6
	if lease {
		p.Kind, p.Rounds = job.Training, 1+r.IntN(4)
	}
	p.StepFLOPs = max(uint64(size/float64(p.Units()*p.Steps)), 1) * giga
	*c = job.Conditions{
		MinProviders: 1, Auditors: 1, AuditSegments: 1, Custodians: 3, Expires: 3_600_000, UnitTimeout: 3_600_000,
		UnitWindow: 60_000, Window: 600_000, Speculate: job.MaxUnits,
	}
	if lease {
		c.MinProviders = min(p.Shards, 1+r.IntN(4))
		c.Needs.Most = p.Shards
	}
	switch n := r.IntN(100); {
	case n < 4:
		o.kind = 0
	case n < 20:
		o.kind = 1
	default:
		o.kind = 2
	}
	if o.kind < 2 {
		c.Needs.Tier = Tiers[o.kind].Label
	}
	o.value = uint64(worth * math.Exp(0.5*r.NormFloat64()) * float64(o.gflop()))
	c.MaxPrice = max(o.value, 1)
	if o.shades {
		c.MaxPrice = max(o.value*shaded/100, 1)
	}
	return o
}
