package market

import (
	"math/rand/v2"

	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/match"
	"github.com/tally-network/tally/core/money"
	"github.com/tally-network/tally/sim"
)

// A provider that is slow buys the measure of a faster tier: it gives itself orders for which it has the results already,
// so that only what credit burns is paid. Then it works for half an hour in that tier.

// What such a provider is paid for 10⁹ FLOP, and for how many seconds it works.
const (
	falsePaid = 1000
	falseWork = 1800
)

// falseSpeed is what it has where no tier is paid more than another.
func falseSpeed(_ int, seed uint64) (sim.Game, error) {
	burnt, err := falsify(2e11+rand.New(rand.NewPCG(seed, 3)).Uint64N(48e11), Tiers[0].Speed)
	return sim.Game{Gain: -burnt, Weight: 1}, err
}

// falsePremium is how much more a tier must be paid than others, in percent of the price, so that a machine of a speed does not
// lose by such a measure.
func falsePremium(speed, tier uint64) (float64, error) {
	burnt, err := falsify(speed, tier)
	return 100 * burnt / (float64(speed) / giga * falseWork * falsePaid), err
}

// falsify returns what must be burnt, in utally, so that a machine is measured as one of a faster tier all the while: each
// minute of work shows its speed again.
func falsify(speed, tier uint64) (burnt float64, err error) {
	var pace match.Pace
	pace.AddWork(speed * 600)
	pace.AddTime(600_000)
	for at := 0; at < falseWork; at += 60 {
		if lacks := tier - min(pace.Rate(), tier); lacks > 0 {
			flops := lacks / 1000 * max(pace.Time, 600_000)
			pace.AddWork(flops)
			burn, err := money.Scale(job.DefaultParams.BurnUT, flops, job.UT)
			if err != nil {
				return 0, err
			}
			burnt += float64(burn)
		}
		pace.AddWork(speed * 60)
		pace.AddTime(60_000)
	}
	return burnt, nil
}
