package market

import (
	"context"
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/sim"
)

// Sweep is an attack played at several values of a parameter.
type Sweep struct {
	Attack    string  `json:"attack"`
	Parameter string  `json:"parameter"`
	Points    []Point `json:"points"`
}

// Point is what an attack earns at one value.
type Point struct {
	At    float64 `json:"at"`
	Games int     `json:"games"`
	Profit
}

// Pays are the values at which an attack gains.
func (s *Sweep) Pays() (at []float64) {
	for _, p := range s.Points {
		if p.Verdict == Gains {
			at = append(at, p.At)
		}
	}
	return at
}

// Threshold is from where on an attack pays, which is computed, not played.
type Threshold struct {
	Attack    string  `json:"attack"`
	Parameter string  `json:"parameter"`
	PaysFrom  float64 `json:"pays_from"`
}

// swept is a sweep before it is played.
type swept struct {
	attack, parameter string
	at                []float64
	game              func(i int) attack
	share             []int // of the games that are asked for one in so many is played, where they are long; nil: all
}

// Sweeps plays attacks over what they depend on.
func Sweeps(ctx context.Context, games int, seed uint64, told func(string)) (out []Sweep, err error) {
	for _, s := range slices.Concat(sweepsOfLeases(), sweepsOfBids()) {
		if told != nil {
			told("sweeps " + s.attack)
		}
		row := Sweep{Attack: s.attack, Parameter: s.parameter}
		for i, at := range s.at {
			n := games
			if s.share != nil {
				n = max(games/s.share[i], 5)
			}
			p, err := measure(ctx, s.game(i), 0, seed<<32+3<<30, n)
			if err != nil {
				return nil, err
			}
			row.Points = append(row.Points, Point{at, n, p})
		}
		out = append(out, row)
	}
	return out, nil
}

// sweptRounds are rounds of three units.
var sweptRounds = []float64{1, 2, 8, 32}

// sweptDeviations depend on how many units an order has: its tax pays for its forced attempts.
var sweptDeviations = []string{"provider is late with forced attempts", "auditor says nothing", "challenger challenges forced attempts of its own, in league with providers",
	"lead gives units to others, in league with providers"}

func sweepsOfLeases() (all []swept) {
	for _, d := range sim.Deviations() {
		if slices.Contains(sweptDeviations, d.String()) {
			all = append(all, swept{d.String(), "units of the order", scaled(sweptRounds, 3), func(i int) attack {
				return onLease(d, rules, int(sweptRounds[i]))
			}, []int{1, 1, 4, 8}})
		}
		switch d.String() {
		case "auditor passes unseen":
			all = append(all, byRule(d, "forced_bps, 200 by default", []float64{0, 10, 25, 50, 100, 200}, func(p *job.Params, x uint64) { p.ForcedBps = x }))
		case "provider is late with forced attempts":
			all = append(all,
				byRule(d, "tax_bps, 210 by default, of orders of 6 units", []float64{210, 500, 1000, 2000, 4000}, func(p *job.Params, x uint64) { p.TaxBps = x }),
				byRule(d, "late_bps, 500 by default, of orders of 6 units", []float64{500, 2000, 5000, 8000, 10_000}, func(p *job.Params, x uint64) { p.LateBps = x }))
		}
	}
	return all
}

// byRule sweeps a rule of leases.
func byRule(d sim.Deviation, parameter string, at []float64, set func(p *job.Params, x uint64)) swept {
	return swept{d.String(), parameter, at, func(i int) attack {
		p := rules
		set(&p, uint64(at[i]))
		return onLease(d, p, leaseRounds)
	}, nil}
}

func scaled(all []float64, by float64) (out []float64) {
	for _, x := range all {
		out = append(out, x*by)
	}
	return out
}

func sweepsOfBids() (all []swept) {
	for _, r := range auctionRules {
		for part, units := range shillParts[:partsOf(r)] {
			all = append(all, swept{fmt.Sprintf("shill bids, %v, %d", r, units), "% of the highest cost of a unit, for so many units", floats(shillPrices), func(i int) attack {
				s := part*len(shillPrices) + i
				return attack{r.String(), []string{"a shill"}, inBooks(func(_ int, seed uint64) (float64, error) { return shill(r, s, seed, 0) })}
			}, nil})
		}
		for _, s := range []side{buys, sells} {
			a := misreports(r, s)
			what := "% of the worth"
			if s == sells {
				what = "% of the cost"
			}
			all = append(all, swept{a.name, what, floats(said[s]), func(i int) attack {
				return attack{a.name, a.strategies[i : i+1], func(_ int, seed uint64) (sim.Game, error) { return a.play(i, seed) }}
			}, nil})
		}
	}
	return all
}

func floats(all []uint64) (out []float64) {
	for _, x := range all {
		out = append(out, float64(x))
	}
	return out
}

// Thresholds says from where on attacks pay that follow from the tariff and from odds alone.
func Thresholds() (out []Threshold, err error) {
	for _, m := range []struct{ speed, tier uint64 }{{19_800e9, 0}, {19_900e9, 0}, {19_990e9, 0}, {4_900e9, 1}, {4_950e9, 1}, {4_995e9, 1}} {
		tier := Tiers[m.tier]
		premium, err := falsePremium(m.speed, tier.Speed)
		if err != nil {
			return nil, err
		}
		out = append(out, Threshold{fmt.Sprintf("false speed, %.4g TFLOP/s as tier %s", float64(m.speed)/1e12, tier.Label), "% that the tier is paid more", premium})
	}
	for _, rate := range []uint64{1, 100, 700, 1000} {
		cost, err := washCost(rate)
		if err != nil {
			return nil, err
		}
		out = append(out, Threshold{fmt.Sprintf("wash training, at %d utally for 10⁹ FLOP", rate), "utally that a credited ut earns", cost})
	}
	return out, nil
}

// washCost is what a credited ut costs whoever orders from itself, in utally: all of the price but pay and fee, which come
// back. It asks for all credit.
func washCost(rate uint64) (float64, error) {
	p := job.Problem{Kind: job.Training, Rounds: 10, Shards: 4, Steps: 64, Interval: 8, Batch: 1, StepFLOPs: 1e12, StateBytes: 1e8}
	c := job.Conditions{MinProviders: 1, Auditors: 1, AuditSegments: 1, Custodians: 3, UnitTimeout: 3_600_000, UnitWindow: 60_000, Window: 600_000, Credit: true}
	q, err := job.NewQuote(&p, &c, job.Rates{GFLOP: rate}, 0, unforced.Tariff)
	if err != nil {
		return 0, err
	}
	credited, err := q.Credited(&p, &c, unforced.Tariff)
	if err != nil {
		return 0, err
	}
	own := q.Unit * uint64(p.Units())
	return float64(q.Price-own) / (float64(credited) / job.UT), nil
}
