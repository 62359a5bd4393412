package sim

import (
	"encoding/binary"
	"fmt"

	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
)

// Deviation is something that people of an order do in place of what the protocol asks for.
type Deviation struct {
	who      Coalition
	strategy Strategy
}

// Deviations returns every action of every choice that is not what the protocol asks for. What takes an accomplice has one.
// Which audits a consumer orders is its own to choose, so that is none.
func Deviations() (out []Deviation) {
	for c := range numChoices {
		if c == chooseAudits {
			continue
		}
		for a := 1; a < len(choices[c].actions); a++ {
			d := Deviation{who: 1 << choices[c].part}
			d.strategy[c] = uint8(a)
			if with, ok := accomplices[deed{c, uint8(a)}]; ok {
				d.who |= 1 << Provider
				d.strategy[choosePlain] = with
			}
			out = append(out, d)
		}
	}
	return out
}

type deed struct {
	choice choice
	action uint8
}

// accomplices says what the provider does in whose favour another acts.
var accomplices = map[deed]uint8{
	{chooseProviders, givesToOthers}:     0,
	{chooseVerdict, vouches}:             forgesAll,
	{chooseKeeping, attestsForFriends}:   withholds,
	{chooseChallenge, toldOfForcedDraws}: 0,
	{chooseChallenge, itself}:            forgesAll,
	{chooseChallenge, loses}:             forgesAll,
}

// String says who does what.
func (d Deviation) String() string {
	if d.who.has(Provider) && d.who != 1<<Provider && d.strategy.does(choosePlain, 0) {
		return d.strategy.tell(Strategy{}) + ", in league with providers"
	}
	return d.strategy.tell(Strategy{})
}

// Game is what a deviation has gained in one order, and how much that counts.
type Game struct {
	Gain   float64 // utally over the protocol
	Weight float64 // how much likelier the order is by the rules than among those that are played
}

// Play plays an order of so many rounds of three units. Forced attempts are more common among orders than by the rules, since few
// orders would else show what they are worth; the weights make up for that.
func (d Deviation) Play(rules job.Params, rounds int, seed uint64) (Game, error) {
	e := economy{rules: rules, forced: rules.ForcedBps + moreForced/uint64(rounds), rounds: rounds}
	var played [2]*bout
	for i, s := range []Strategy{{}, d.strategy} {
		b, err := newBout(e, d.who, s, seed)
		if err == nil {
			err = b.play()
		}
		if err != nil {
			return Game{}, err
		}
		played[i] = b
	}
	price := played[0].price()
	return Game{played[1].profit(price) - played[0].profit(price), likelihood(played[0])}, nil
}

// moreForced is by how many bps first attempts are forced more often than by the rules, in orders of one round. With two rounds
// nearly half of all orders have one, where a ninth would.
const moreForced = 1600

// tilt makes an attempt forced as often as the economy has it. The output of a VRF stays what the rules ask of it.
func (e *economy) tilt(output []byte) {
	if e.forced <= e.rules.ForcedBps || !proof.Forced(output, e.forced) {
		return
	}
	n := binary.BigEndian.Uint64(output)
	binary.BigEndian.PutUint64(output, n/e.forced*e.rules.ForcedBps)
}

// likelihood is how much likelier the forced draws of a bout's first attempts are by the rules than in the economy.
func likelihood(b *bout) float64 {
	l, p, q := 1.0, float64(b.economy.rules.ForcedBps), float64(b.economy.forced)
	if q <= p {
		return 1
	}
	for i := range b.lease.Units {
		if _, forced := b.forcedDraw(i, 0); forced {
			l *= p / q
		} else {
			l *= (10_000 - p) / (10_000 - q)
		}
	}
	return l
}

// Wash is an order that consumer, lead and providers who are one person give themselves, for the computing power.
type Wash struct {
	Cost     float64 // utally that it has lost: burnt, taxed, and paid to others for audits and keeping. Computing is left out
	Credited uint64  // FLOP
}

// WashTrain plays such an order, in which all work is done, and pays for all its credit if it asks for that.
func WashTrain(rules job.Params, seed uint64, credit bool) (out Wash, err error) {
	w, err := beginWorld(named(), seed, job.Conditions{Auditors: 1, AuditSegments: 1, Credit: credit}, rules)
	if err != nil {
		return out, err
	}
	b := sit(w, economy{rules: rules}, 1<<Consumer|1<<Lead|1<<Provider, Strategy{}, seed)
	if err := b.play(); err != nil {
		return out, err
	}
	for account, n := range b.earned { // order: a sum
		if b.mine(account) {
			out.Cost -= float64(n)
		}
	}
	l := &b.lease
	if out.Credited, err = l.Quote.Credited(&l.Order.Problem, &l.Order.Conditions, l.Params.Tariff); err != nil {
		return out, fmt.Errorf("credit of a wash: %w", err)
	}
	return out, nil
}
