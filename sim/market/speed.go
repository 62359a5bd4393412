package market

import (
	"math"
	"math/rand/v2"

	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/probe"
	"github.com/tally-network/tally/sim"
)

// A provider that is slow wants to pass for one of a faster tier. Results that it has already show a processor's speed at
// most, and nobody can have those of a probe. So it forges the runs of a probe for which it has no time, one in each unit. An
// auditor sees a sixteenth of them. If it is not caught, it works for half an hour in that tier.

// What such a provider is paid for 10⁹ FLOP, for how many seconds it works, and the runs of its units.
const (
	falsePaid  = 1000
	falseWork  = 1800
	falseSteps = 32
)

// falseSpeed is what it has where no tier is paid more than another.
func falseSpeed(_ int, seed uint64) (sim.Game, error) {
	r := rand.New(rand.NewPCG(seed, 3))
	lost, missed, err := forge(2e11+r.Uint64N(48e11), Tiers[0].Speed)
	if r.Float64() < missed {
		lost = 0
	}
	return sim.Game{Gain: -lost, Weight: 1}, err
}

// falsePremium is how much more a tier must be paid than others, in percent of the price, so that a machine of a speed does not
// lose by forging.
func falsePremium(speed, tier uint64) (float64, error) {
	lost, missed, err := forge(speed, tier)
	return 100 * lost * (1 - missed) / missed / (float64(speed) / giga * falseWork * falsePaid), err
}

// forge returns what a machine loses if it is caught, in utally, and the odds that it is not.
func forge(speed, tier uint64) (lost, missed float64, err error) {
	runs := probe.Runs(tier, probe.LeastMs)
	forged := math.Ceil(float64(runs) * (1 - float64(speed)/float64(tier)))
	missed = math.Pow(1-float64(probe.Audited(falseSteps))/falseSteps, forged)
	p := job.Problem{Kind: job.Batch, Rounds: 1, Shards: runs / falseSteps, Steps: falseSteps, Interval: 1, Batch: 1, Records: runs, StepFLOPs: probe.RunFLOPs}
	c := job.Conditions{MinProviders: 1, Auditors: 1, AuditSegments: probe.Audited(falseSteps), Custodians: 3, UnitTimeout: 600_000, UnitWindow: 20_000, Window: 300_000}
	q, err := job.NewQuote(&p, &c, job.Rates{GFLOP: falsePaid}, 0, unforced.Tariff)
	return float64(q.Unit * job.DefaultParams.BondFactor), missed, err
}
