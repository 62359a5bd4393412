package market

import (
	"math"
	"slices"

	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/money"
	"github.com/tally-network/tally/core/power"
)

// Report is what came of a day.
type Report struct {
	Options
	Hours  []Hour `json:"hour"`
	Blocks int64  `json:"blocks"`
	Memory uint64 `json:"memory_bytes"` // taken from the machine

	Gini        float64    `json:"gini"` // of what providers have earned beyond what it cost them
	Earnings    []Earnings `json:"earnings"`
	Truthful    Buyers     `json:"truthful_buyers"`
	Shading     Buyers     `json:"shading_buyers"`
	Burnt       float64    `json:"burnt_tally"`
	Credited    float64    `json:"credited_ut"`
	BurntPerUT  float64    `json:"burnt_utally_per_ut"`
	PaidPerUT   float64    `json:"earned_utally_per_ut"` // by providers, for each ut that was credited
	Third       float64    `json:"third_ut"`             // to be credited, for a third of the power
	ThirdCosts  float64    `json:"third_burns_tally"`
	ThirdOfPaid float64    `json:"third_burns_of_turnover"` // what that burns, as a part of what was paid in the day
}

// Earnings are those of providers that ask in one manner.
type Earnings struct {
	Manner    string  `json:"manner"`
	Providers int     `json:"providers"`
	Mean      float64 `json:"mean_tally"` // beyond what work has cost them
}

// Buyers are those that bid in one manner.
type Buyers struct {
	Orders int     `json:"orders"`
	Served float64 `json:"served"` // of all orders
	Gain   float64 `json:"gain"`   // of what all orders are worth: worth less what was paid
}

// Trades are those of one market.
type Trades struct {
	Orders int     `json:"orders"`
	GFLOP  float64 `json:"gflop"`
	Paid   float64 `json:"paid_utally"` // by consumers, with wages, burn and tax
	Price  float64 `json:"utally_per_gflop"`
}

func (t *Trades) add(o *order, price uint64) {
	t.Orders++
	t.GFLOP += float64(o.gflop())
	t.Paid += float64(price)
}

// Hour is what came of an hour.
type Hour struct {
	Hour        int        `json:"hour"`
	Posted      int        `json:"posted"`
	Matched     int        `json:"matched"`
	Expired     int        `json:"expired"`
	Settled     int        `json:"settled"`
	Joined      int        `json:"joined"`
	Open        int        `json:"open"`
	Running     int        `json:"running"`
	Book        Trades     `json:"book"`
	Auction     [3]Trades  `json:"auction"`     // by tier
	Competitive [3]float64 `json:"competitive"` // price of 10⁹ FLOP of each tier in one clearing, if nobody lied
	Cleared     float64    `json:"cleared_utally"`
	Bound       float64    `json:"bound_utally"` // of the welfare of that clearing
	Used        float64    `json:"used"`         // of what all providers could compute
	Welfare     float64    `json:"welfare_tally"`
	Burnt       uint64     `json:"burnt_utally"`
	Credited    float64    `json:"credited_ut"`
	Spread      float64    `json:"spread"` // standard deviation of what learning providers ask over their cost
}

// close completes an hour.
func (h *Hour) close(e *economy) {
	h.Open, h.Running = len(e.book[0])+len(e.book[1])+len(e.waiting), len(e.running)
	for _, t := range append([]*Trades{&h.Book}, &h.Auction[0], &h.Auction[1], &h.Auction[2]) {
		if t.GFLOP > 0 {
			t.Price = t.Paid / t.GFLOP
		}
	}
	var could, sum, squares, n float64
	for i := range e.providers {
		x := &e.providers[i]
		could += float64(x.speed) * 3600
		if x.manner == learns {
			m := float64(x.ask) / float64(max(x.cost, 1))
			sum, squares, n = sum+m, squares+m*m, n+1
		}
	}
	h.Used, h.Welfare, h.Credited = h.Used/could, h.Welfare/1e6, h.Credited/job.UT
	h.Spread = math.Sqrt(max(squares/n-sum*sum/n/n, 0))
}

// finish says what came of all hours.
func (e *economy) finish() (*Report, error) {
	r := &e.report
	r.Blocks = e.block
	gains := make([]float64, len(e.providers))
	r.Earnings = make([]Earnings, manners)
	for i := range e.providers {
		x := &e.providers[i]
		gains[i] = float64(x.earned) - float64(x.spent)
		w := &r.Earnings[x.manner]
		w.Providers++
		w.Mean += gains[i] / 1e6
	}
	for m := range r.Earnings {
		r.Earnings[m].Manner = mannerNames[m]
		r.Earnings[m].Mean /= float64(max(r.Earnings[m].Providers, 1))
	}
	r.Gini = gini(gains)
	for i, b := range []*Buyers{&r.Truthful, &r.Shading} {
		p := &e.buyers[i]
		*b = Buyers{p.Orders, float64(p.Served) / float64(max(p.Orders, 1)), p.Gain / max(p.Worth, 1)}
	}
	r.Burnt = float64(e.burnt) / 1e6
	var earned float64
	for i := range r.Hours {
		r.Credited += r.Hours[i].Credited
	}
	for i := range e.providers {
		earned += float64(e.providers[i].earned)
	}
	if r.Credited > 0 {
		r.BurntPerUT, r.PaidPerUT = float64(e.burnt)/r.Credited, earned/r.Credited
	}
	third, err := e.all.Third(e.hour)
	if err != nil {
		return nil, err
	}
	costs, err := money.Scale(third, e.rules.BurnUT, power.UT/power.MicroUT)
	if err != nil {
		return nil, err
	}
	r.Third, r.ThirdCosts = float64(third)/1e6, float64(costs)/1e6
	r.ThirdOfPaid = float64(costs) / max(float64(e.paid), 1)
	return r, nil
}

// gini is how unequal numbers are: 0 if all are the same, 1 if one has all. Losses count as nothing.
func gini(all []float64) float64 {
	x := slices.Clone(all)
	for i := range x {
		x[i] = max(x[i], 0)
	}
	slices.Sort(x)
	var sum, weighted float64
	for i, v := range x {
		sum += v
		weighted += float64(i+1) * v
	}
	n := float64(len(x))
	if sum == 0 {
		return 0
	}
	return 2*weighted/(n*sum) - (n+1)/n
}
