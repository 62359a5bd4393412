package sim

import "github.com/tally-network/tally/core/job"

// Deviation is something that people of an order do in place of what the protocol asks for.
type Deviation struct {
	Name     string
	who      Coalition
	strategy Strategy
}

// Deviations are those that somebody might think to gain by.
var Deviations = []Deviation{
	{"late delivery", 1 << Provider, Strategy{choosePlain: isLate, chooseForced: isLate}},
	{"forged work", 1 << Provider, Strategy{choosePlain: forgesAll}},
	{"withheld data", 1 << Provider, Strategy{choosePlain: withholds}},
	{"wrong merges", 1 << Lead, Strategy{chooseLeading: mergesWrongly}},
	{"taking orders and refusing", 1 << Lead, Strategy{chooseLeading: declines}},
	{"audits unseen", 1 << Auditor, Strategy{chooseVerdict: passesUnseen}},
	{"keeping nothing", 1 << Custodian, Strategy{chooseKeeping: keepsNothing}},
	{"blind challenges", 1 << Challenger, Strategy{chooseChallenge: blindly}},
}

// Gain plays an order, and returns what a deviation earns over the protocol, in utally. Forced attempts are as common as in
// the bouts of coalitions, so that few orders show what they are worth.
func (d Deviation) Gain(seed uint64) (float64, error) {
	var played [2]*bout
	for i, s := range []Strategy{{}, d.strategy} {
		b, err := newBout(bouts, d.who, s, seed)
		if err == nil {
			err = b.play()
		}
		if err != nil {
			return 0, err
		}
		played[i] = b
	}
	price := played[0].price()
	return played[1].profit(price) - played[0].profit(price), nil
}

// Wash is an order that consumer, lead and providers who are one person give themselves, for the computing power.
type Wash struct {
	Cost     float64 // utally that it has lost: burnt, taxed, and paid to others for audits and keeping. Computing is left out
	Credited uint64  // FLOP
}

// WashTrain plays such an order, in which all work is done, and pays for all its credit if it asks for that.
func WashTrain(seed uint64, credit bool) (out Wash, err error) {
	w, err := beginWorld(named(), seed, job.Conditions{Auditors: 1, AuditSegments: 1, Credit: credit}, job.DefaultParams.Quick())
	if err != nil {
		return out, err
	}
	b := sit(w, economy{rules: job.DefaultParams.Quick()}, 1<<Consumer|1<<Lead|1<<Provider, Strategy{}, seed)
	if err := b.play(); err != nil {
		return out, err
	}
	for account, n := range b.earned { // order: a sum
		if b.mine(account) {
			out.Cost -= float64(n)
		}
	}
	l := &b.lease
	out.Credited, err = l.Quote.Credited(&l.Order.Problem, &l.Order.Conditions, l.Params.Tariff)
	return out, err
}
