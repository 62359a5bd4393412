package sim

import (
	"cmp"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
)

// lookedAt is the share, one of so many, of units, merges, truths and custodians at which
// the one honest challenger of a bout looks.
const lookedAt = 4

// economy is under what rules bouts are played.
type economy struct {
	rules  job.Params
	prizes func(b *bout) // after the settlement, if not nil: for rules that are no more
	forced uint64        // bps of the first attempts that are forced, if more than by the rules: then bouts count by likelihood
	rounds int           // of an order, if not as many as named has
	deal   deal          // of a coalition that orders from itself
}

// bouts are played by rules in equilibrium under which forced attempts are so common
// that a few orders show what they are worth.
var bouts = economy{rules: func() job.Params {
	p := job.DefaultParams.Quick()
	p.ForcedBps, p.VerdictFactor, p.TaxBps = 1000, 20, 10_000
	return p
}()}

// bout is one order in which a coalition follows a strategy.
type bout struct {
	*world
	coalition Coalition
	strategy  Strategy
	economy   economy
	chance    uint64 // all that chance decides follows from it

	worth map[string]int64    // utally that the work of members is worth, at the order's own rates
	made  map[canon.Hash]work // by receipt
	bare  map[string]bool     // attestations and verdicts of who has not done what they say
	done  map[string]bool     // what was looked at, asked or challenged already
	shown []share             // forced attempts that were shown
}

// work is how a receipt came to be.
type work struct {
	computed  bool
	available bool
	truth     []proof.Outcome // what its provider shows, if it is forced
}

// share is a forced attempt: whose it is, and who challenged it first.
type share struct{ provider, challenger string }

// named is an order whose programs and states are mere names.
func named() *training {
	h := func(s string) canon.Hash { return canon.Sum(canon.Domain("sim/named"), []byte(s)) }
	return &training{problem: job.Problem{
		Kind: "training", Profile: "fp32", Step: h("step"), Merge: h("merge"), Start: h("start"), Data: h("data"),
		Rounds: rounds, Shards: 3, Steps: steps, Interval: interval, Batch: batch, Records: records, Seed: 1,
		StepFLOPs: 1_000_000, StepBytes: 0, MergeFLOPs: 1000, MergeBytes: 0, StateBytes: 1000,
		Files: []job.File{{Role: "model", CID: "model", Size: 1000}},
	}}
}

func newBout(e economy, c Coalition, s Strategy, chance uint64) (*bout, error) {
	conditions := job.Conditions{Auditors: 1, AuditSegments: 1}
	if s.does(chooseAudits, noAuditors) {
		conditions.Auditors, conditions.AuditSegments = 0, 0
	}
	// How far rounds run ahead of windows is the consumer's choice, and chance's here.
	conditions.Speculate = []int{0, 1, job.MaxUnits}[chance%3]
	t := named()
	t.problem.Rounds = cmp.Or(e.rounds, rounds)
	w, err := beginWorld(t, chance, conditions, e.rules)
	if err != nil {
		return nil, err
	}
	return sit(w, e, c, s, chance), nil
}

// sit seats a coalition in a world.
func sit(w *world, e economy, c Coalition, s Strategy, chance uint64) *bout {
	return &bout{
		world: w, coalition: c, strategy: s, economy: e, chance: chance,
		worth: map[string]int64{}, made: map[canon.Hash]work{}, bare: map[string]bool{}, done: map[string]bool{},
	}
}

// mine reports whether an account is of the coalition.
func (b *bout) mine(account string) bool {
	switch account {
	case consumer:
		return b.coalition.has(Consumer)
	case lead:
		return b.coalition.has(Lead)
	case griever:
		return b.coalition.has(Challenger)
	}
	for i := range max(providers, validators) {
		switch account {
		case provider(i):
			return (i < 2 || b.economy.deal.owned) && b.coalition.has(Provider)
		case validator(i):
			return i < validators/3 && (b.coalition.has(Auditor) || b.coalition.has(Custodian))
		}
	}
	return false
}

// chooses returns the action of an account.
func (b *bout) chooses(account string, c choice) uint8 {
	if !b.mine(account) {
		return 0
	}
	return b.strategy[c]
}

// luck is a number that chance draws for what is named, whoever has to do with it: so
// that strategies are compared in the same circumstances.
func (b *bout) luck(what string, at ...int) uint64 {
	h := canon.Sum(canon.Domain("sim/luck"), fmt.Append(nil, b.chance, what, at))
	return binary.LittleEndian.Uint64(h[:])
}

// first reports whether something is done for the first time.
func (b *bout) first(format string, args ...any) bool {
	name := fmt.Sprintf(format, args...)
	defer func() { b.done[name] = true }()
	return !b.done[name]
}

// try applies an event, and reports whether it was taken.
func (b *bout) try(e job.Event) (bool, error) {
	next, effects, err := job.Apply(b.lease, e, b.now)
	if err != nil {
		return false, nil //nolint:nilerr // a refused event is an outcome
	}
	b.lease = next
	b.perform(effects)
	return true, nil
}

// play lets everybody act until the lease has ended.
func (b *bout) play() error {
	seed := canon.Sum(canon.Domain("sim/draws"), fmt.Append(nil, b.chance))
	for range 2000 {
		if b.lease.Phase == job.Settled {
			if b.economy.prizes != nil {
				b.economy.prizes(b)
			}
			return b.check()
		}
		acted, err := b.act()
		if err != nil {
			return err
		}
		if b.now += 1000; !acted {
			b.now = max(b.now, min(b.wake(), b.now+600_000))
		}
		if err := b.do(job.Tick{Seed: seed, Affords: b.economy.deal.affords(b)}); err != nil && !errors.Is(err, job.ErrEnded) {
			return err
		}
	}
	return fmt.Errorf("the lease does not end: it is %v at round %d", b.lease.Phase, b.lease.Round)
}

// wake is when something falls due: by itself, or because a window is over.
func (b *bout) wake() int64 {
	at := b.lease.Wake()
	for i := range b.lease.Units {
		if end := b.lease.Units[i].WindowEnd; end >= b.now {
			at = min(at, end)
		}
	}
	return at
}

// act lets everybody do once what is due.
func (b *bout) act() (acted bool, err error) {
	for _, f := range []func() (bool, error){b.files, b.lead, b.compute, b.attest, b.challenge, b.audit, b.watch, b.proveDraws, b.merge, b.ask} {
		did, err := f()
		if err != nil {
			return false, err
		}
		acted = acted || did
	}
	return acted, nil
}

// lead gives out what is open, its own providers first.
func (b *bout) lead() (acted bool, err error) {
	l := &b.lease
	by := l.Lead()
	for _, d := range l.Leads {
		if d.Account != lead && l.MayTakeLead(d.Account, b.now) {
			return b.try(job.TakeLead{By: d.Account, Waiting: waiting(l)})
		}
	}
	if b.alone() && !b.mine(by) {
		return false, nil // it has no files
	}
	switch b.chooses(by, chooseLeading) {
	case idles:
		return queue(b)
	case declines:
		if ok, err := b.try(job.Decline{By: by, Reason: "no files"}); ok || err != nil {
			return ok, err
		}
	}
	for shard, u := range l.RoundUnits() {
		i := l.Unit(l.Round, shard)
		if u.Status != job.Open || l.Phase != job.Active {
			continue
		}
		who := b.provider(by, i, &u)
		if who == "" {
			continue
		}
		a := job.Acceptance{Order: l.Order.ID(), Unit: i, Attempt: u.Attempt, Provider: who}
		ok, err := b.try(job.Assign{By: by, Units: []job.Assignment{{
			Unit: i, Attempt: u.Attempt, Signature: ed25519.Sign(key(who), a.SignBytes()),
			Standing: job.Standing{Provider: who, Free: math.MaxUint64, Staked: math.MaxUint64},
		}}})
		if err != nil {
			return acted, err
		}
		acted = acted || ok
	}
	return acted, nil
}

// queue lets providers that a lead keeps waiting say that they are ready.
func queue(b *bout) (acted bool, err error) {
	for i := range providers {
		who := provider(i)
		if b.mine(who) || b.lease.Files.Said != job.Had || !b.first("ready %d %s", b.lease.Round, who) {
			continue
		}
		ok, err := b.try(job.Ready{Provider: who})
		if err != nil {
			return acted, err
		}
		acted = acted || ok
	}
	return acted, nil
}

// waiting is what the chain knows of those that are ready.
func waiting(l *job.Lease) (out []job.Standing) {
	for _, w := range l.Queue {
		out = append(out, job.Standing{Provider: w.Provider, Free: math.MaxUint64, Staked: math.MaxUint64})
	}
	return out
}

// provider returns who is given a unit, "" if nobody may have it.
func (b *bout) provider(by string, i int, u *job.Unit) string {
	may := slices.DeleteFunc(b.lease.Eligible(), func(p string) bool {
		return b.lease.Withheld(i, p) || b.alone() && !b.mine(p) // who has no files takes no unit
	})
	if b.mine(by) && b.coalition.has(Provider) {
		own := slices.DeleteFunc(slices.Clone(may), func(p string) bool {
			return b.mine(p) == b.strategy.does(chooseProviders, givesToOthers)
		})
		if len(own) > 0 {
			may = own
		}
	}
	if len(may) == 0 {
		return ""
	}
	return may[(i+u.Attempt)%len(may)]
}

// merge lets the lead merge a round whose units are accepted.
func (b *bout) merge() (bool, error) {
	l := &b.lease
	by := l.Lead()
	if by == "" || !l.AwaitsMerge() {
		return false, nil
	}
	ends := l.Ends(l.Round)
	action := b.chooses(by, chooseLeading)
	root := merged(ends)
	switch action {
	case idles:
		return false, nil
	case mergesWrongly:
		root = canon.Sum(canon.Domain("sim/wrong"), root[:])
	}
	return b.try(job.PostMerge{By: by, Round: l.Round, Root: root, Data: job.File{Role: "merge", CID: "data", Size: 1}})
}

// merged is what units that ended so truly merge into.
func merged(ends []canon.Hash) canon.Hash {
	root := canon.Root(ends)
	return canon.Sum(canon.Domain("sim/merged"), root[:])
}

// trulyGives returns what a segment of a unit truly gives.
func trulyGives(unit, segment int, from canon.Hash) proof.Outcome {
	name := func(what string) canon.Hash {
		return canon.Sum(canon.Domain("sim/"+what), from[:], []byte{byte(unit), byte(segment)})
	}
	return proof.Outcome{Before: name("before"), End: name("end")}
}

// wrongSegment returns the first segment of a receipt that does not hold, −1 if all do.
func wrongSegment(r *job.Receipt) int {
	for g, from := range r.Checkpoints[:segments] {
		if trulyGives(r.Unit, g, from).End != r.Checkpoints[g+1] {
			return g
		}
	}
	return -1
}

// pay is what a unit earns.
func (b *bout) pay() int64 {
	pay, _ := b.rates().Pay(b.problem.UnitFLOPs(), 0)
	return int64(pay)
}

// value returns how much of what the consumer ordered it has, in parts of one: units
// that are right, of rounds whose starts are.
func (b *bout) value() float64 {
	l, right, from := &b.lease, 0, b.problem.Start
	for r := range l.Order.Problem.Rounds {
		var ends []canon.Hash
		for s := range l.Order.Problem.Shards {
			u := &l.Units[l.Unit(r, s)]
			if u.Status == job.Accepted && u.Receipt.Start == from && wrongSegment(u.Receipt) < 0 {
				right++
				ends = append(ends, l.Order.Problem.End(u.Receipt))
			}
		}
		if len(ends) < l.Order.Problem.Shards || r >= l.Round || l.Merges[r].Root != merged(ends) {
			break
		}
		from = l.Merges[r].Root
	}
	return float64(right) / float64(len(l.Units))
}

// profit returns what the members have in the end, in utally, beyond what their work is
// worth at the order's own rates. A consumer has what it was ready to pay for the whole result,
// as far as that is right. Audits and keeping count as far as they were done.
func (b *bout) profit(price float64) float64 {
	sum := int64(0)
	for account, n := range b.earned { // order: a sum
		if b.mine(account) {
			sum += n
		}
	}
	for account, n := range b.worth { // order: a sum
		if b.mine(account) {
			sum -= n
		}
	}
	if by := b.lease.Lead(); b.mine(by) && !b.strategy.does(chooseLeading, mergesWrongly) {
		for i := range b.lease.Units {
			if b.lease.Units[i].Status == job.Accepted {
				sum -= b.pay() * int64(b.lease.FeeBps) / 10_000
			}
		}
	}
	if b.coalition.has(Consumer) {
		_, cared := b.care()
		return float64(sum+cared) + price*b.value()
	}
	return float64(sum)
}

// price is what the order cost its consumer, in utally, but for audits and keeping.
func (b *bout) price() float64 {
	paid, _ := b.care()
	return float64(int64(b.lease.Quote.Price+b.lease.Deposit-b.lease.Ledger.Refund-b.lease.Ledger.Insured) - paid)
}

// care returns what the consumer paid for audits and keeping, in utally, and what of it
// is for what was done; with what is burnt and taxed of it.
func (b *bout) care() (paid, done int64) {
	p := &b.lease.Params
	count := func(wage uint64, truly bool) {
		amount := int64(wage) * int64(10_000+p.BurnBps+p.TaxBps) / 10_000
		if paid += amount; truly {
			done += amount
		}
	}
	for i := range b.lease.Units {
		u := &b.lease.Units[i]
		if u.Status != job.Accepted {
			continue
		}
		for _, a := range u.Audits {
			if a.Done && a.Pass {
				count(b.lease.Quote.Audit, !b.bare[verdictOf(a.Auditor, i, u.Attempt)])
			}
		}
		for _, k := range u.Attested {
			if k.Stands() {
				count(b.lease.Quote.Keep, !b.bare[keepingOf(k.Custodian, i, u.Attempt)])
			}
		}
	}
	return paid, done
}

// defeat closes a dispute that was opened, and takes the bond of a challenger that
// was wrong.
func (b *bout) defeat(loser dispute.Side, challenger, defender string, bond uint64) error {
	if ok, err := b.try(job.CloseDispute{ID: b.games, Loser: loser}); !ok || err != nil {
		return err
	}
	if loser == dispute.Challenger {
		b.forfeit(bond, challenger, defender)
	}
	return nil
}
