package market

import (
	"container/heap"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"

	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/power"
)

// Options says how large an economy is, and what all of it follows from.
type Options struct {
	Providers int    `json:"providers"`
	Orders    int    `json:"orders"` // in a day
	Hours     int    `json:"hours"`  // of protocol time
	BlockMs   int64  `json:"block_ms"`
	Seed      uint64 `json:"seed"`

	Told func(Hour) `json:"-"` // after each hour; may be nil
}

// Sizes of an economy.
const (
	LeastProviders = 100
	MostProviders  = 1_000_000
	MostOrders     = 10_000_000
)

// What the economy is like. Demand is so large that it is short of supply in the hours of the shock alone.
const (
	load        = 0.7     // demand of a day, as a part of what all could compute
	worth       = 1_300   // utally that 10⁹ FLOP are worth, in the median
	leases      = 30      // percent of orders that take an offer's lease; the others meet a clearing
	period      = 600_000 // ms from one clearing to the next
	shockBegins = 9       // hour from which on three times as many order, for two hours
	outage      = 16      // hour from which on a fifth of the providers are away, for two hours
	leaving     = 2       // of 1,000 providers leave between clearings, and others come in their place
	wealth      = 1 << 61 // utally that consumers have
)

// economy is a day that is played.
type economy struct {
	Options
	*people
	r     *rand.Rand
	rules job.Params
	now   int64
	block int64

	ledger

	book    [2]queue // open orders for leases: those never tried, and those that were
	waiting []*order // for a clearing
	running running  // leases, by when they end
	cursor  int      // of the validators, whose offers the next block looks at
	number  uint64
	gflop   float64 // of an order, on average

	all    power.Record
	hour   power.Hour
	tally  Hour // of the present hour
	report Report
	prices [3]float64 // of each tier at the last clearing, utally for 10⁹ FLOP
	buyers [2]luck    // those that bid what an order is worth to them, and those that shade
	market auctioneer
}

// ledger is all utally there are.
type ledger struct{ purse, escrow, paid, pool, burnt uint64 }

// luck is what some consumers had of their orders.
type luck struct {
	Orders, Served int
	Gain           float64 // utally: worth less what was paid
	Worth          float64 // utally of all orders
}

// queue is orders by when they are tried next.
type queue []*order

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].Nonce < q[j].Nonce
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(*order)) }
func (q *queue) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}

// Day plays the hours of a day, and says what came of them.
func Day(ctx context.Context, o Options) (*Report, error) {
	if o.Providers < LeastProviders || o.Providers > MostProviders || o.Orders < 1 || o.Hours < 1 || o.BlockMs < 1 || o.BlockMs > period {
		return nil, fmt.Errorf("%d providers, %d orders, %d hours of blocks of %d ms: want %d to %d providers, and one of each at least", o.Providers, o.Orders, o.Hours, o.BlockMs, LeastProviders, MostProviders)
	}
	e := newEconomy(o)
	for e.now < int64(o.Hours)*3_600_000 {
		if e.block%64 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := e.next(); err != nil {
			return nil, fmt.Errorf("block %d: %w", e.block, err)
		}
	}
	return e.finish()
}

// unforced are the rules of a new chain, but that a price holds no money for forced attempts: where none is played, all of it would
// come back.
var unforced = func() job.Params {
	p := job.DefaultParams
	p.ForcedBps = 0
	return p
}()

func newEconomy(o Options) *economy {
	r := rand.New(rand.NewPCG(o.Seed, uint64(o.Providers)))
	e := &economy{Options: o, people: newPeople(o.Providers, r), r: r, rules: unforced, ledger: ledger{purse: wealth}}
	for i := range e.providers {
		e.gflop += float64(e.providers[i].speed) / giga
	}
	e.gflop *= 86_400 * load / float64(o.Orders)
	e.report.Options = o
	return e
}

// next plays a block.
func (e *economy) next() error {
	e.block++
	e.now += e.BlockMs
	e.arrive()
	if err := e.settle(); err != nil {
		return err
	}
	if err := e.match(); err != nil {
		return err
	}
	if e.now/period > (e.now-e.BlockMs)/period {
		e.change()
		if err := e.clear(); err != nil {
			return err
		}
	}
	if sum := e.purse + e.escrow + e.paid + e.pool + e.burnt; sum != wealth {
		return fmt.Errorf("there are %d utally, and were %d", sum, uint64(wealth))
	}
	if h := power.Hour(e.now / 3_600_000); h > e.hour {
		return e.endHour(h)
	}
	return nil
}

// busyness is how many more order in an hour than on average.
func busyness(hour int) float64 {
	b := 1 + 0.4*math.Sin(2*math.Pi*float64(hour-6)/24)
	if hour >= shockBegins && hour < shockBegins+2 {
		b *= 3
	}
	return b
}

// day is the sum of a day's busyness.
var day = func() (sum float64) {
	for h := range 24 {
		sum += busyness(h)
	}
	return sum
}()

// arrive lets consumers post orders: as many as chance has it, about so many.
func (e *economy) arrive() {
	mean := float64(e.Orders) * busyness(int(e.now/3_600_000)%24) / day * float64(e.BlockMs) / 3_600_000
	for n := poisson(mean, e.r); n > 0; n-- {
		e.number++
		lease := e.r.IntN(100) < leases
		o := newOrder(e.number, e.gflop, worth, lease, e.r)
		o.at, o.posted = e.now, e.now
		e.purse -= o.Conditions.MaxPrice
		e.escrow += o.Conditions.MaxPrice
		e.tally.Posted++
		b := &e.buyers[of(o.shades)]
		b.Orders++
		b.Worth += float64(o.value)
		if lease {
			heap.Push(&e.book[0], o)
		} else {
			e.waiting = append(e.waiting, o)
		}
	}
}

func of(b bool) int {
	if b {
		return 1
	}
	return 0
}

// poisson draws how often something happens that happens so often on average.
func poisson(mean float64, r *rand.Rand) (n int) {
	if mean > 50 {
		return max(0, int(math.Round(mean+math.Sqrt(mean)*r.NormFloat64())))
	}
	for p := r.Float64(); p > math.Exp(-mean); n++ {
		p *= r.Float64()
	}
	return n
}

// refund gives an order's escrow back.
func (e *economy) refund(o *order) {
	e.escrow -= o.Conditions.MaxPrice
	e.purse += o.Conditions.MaxPrice
	e.tally.Expired++
}

// change lets providers come, go, be away, and think about what they ask.
func (e *economy) change() {
	for i := range e.providers {
		x := &e.providers[i]
		if e.r.IntN(1000) < leaving && x.free <= e.now {
			e.leave(int32(i))
			e.join(int32(i), e.r)
			e.tally.Joined++
			continue
		}
		if e.now/3_600_000 == outage && e.now%3_600_000 < period && e.r.IntN(5) == 0 {
			x.free = max(x.free, e.now+2*3_600_000)
		}
		if x.manner == learns && x.sold {
			x.ask += x.ask/100 + 1
		} else if x.manner == learns && x.free <= e.now {
			x.ask = max(x.cost, x.ask-x.ask/50)
		}
		x.sold = false
		if e.r.IntN(10) == 0 { // it looks where capacity is paid best
			x.kind = x.tier
			for k := int(x.tier) + 1; k < len(Tiers); k++ {
				if e.prices[k] > e.prices[x.kind] {
					x.kind = uint8(k)
				}
			}
		}
	}
}

// endHour credits what was verified in an hour, and tells of it.
func (e *economy) endHour(h power.Hour) error {
	var sum uint64
	for i := range e.providers {
		x := &e.providers[i]
		sum += x.earned
		micro := x.flops / power.MicroUT
		if micro == 0 {
			continue
		}
		x.flops -= micro * power.MicroUT
		if err := x.record.Training.Credit(micro, e.hour); err != nil {
			return err
		}
		if err := e.all.Training.Credit(micro, e.hour); err != nil {
			return err
		}
	}
	for i := range e.validators {
		sum += e.validators[i].earned
	}
	if sum != e.paid {
		return fmt.Errorf("people have earned %d utally, and were paid %d", sum, e.paid)
	}
	t := &e.tally
	t.Hour = int(e.hour) + 1
	t.close(e)
	e.report.Hours = append(e.report.Hours, *t)
	if e.Told != nil {
		e.Told(*t)
	}
	e.tally, e.hour = Hour{}, h
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	e.report.Memory = max(e.report.Memory, m.Sys)
	return nil
}

// id is a name in the order of numbers.
func id(n int) (out [32]byte) {
	binary.BigEndian.PutUint64(out[:], uint64(n))
	return out
}
