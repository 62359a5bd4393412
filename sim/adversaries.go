package sim

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"

	"github.com/tally-network/tally/core/beacon"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
)

// Row is what became of one adversary under one assurance policy.
type Row struct {
	Name      string  `json:"name"`
	Policy    string  `json:"policy"`
	Dishonest float64 `json:"dishonest_power"` // share of those who could have found it, and look away
	Runs      int     `json:"runs"`

	ExpectedProfit float64 `json:"expected_profit"` // utally a run, mean
	UnitPay        float64 `json:"unit_pay"`        // utally, for comparison
	HonestSlashed  int     `json:"honest_slashed"`  // honest accounts that lost a bond, over all runs

	// Accepted are runs whose result is wrong and was paid for. Predicted is what
	// the formula of the policy says.
	Accepted  float64 `json:"accepted_wrong_rate"`
	Predicted float64 `json:"predicted_wrong_rate"`
	Within    bool    `json:"within_error"` // the two agree within 4 standard errors
}

// Options say how much is played.
type Options struct {
	Runs int            // of each row
	Seed uint64         // all follows from it
	Only *regexp.Regexp // names; nil is all
	Told func(done, all int, name string)
}

// assurance is what a consumer can ask for.
type assurance struct {
	name      string
	auditors  int
	segments  int  // of each
	watched   bool // by one honest challenger
	replicas  int
	fragments int // of which each custodian keeps one; 0: three custodians keep all
}

var (
	audited   = assurance{name: "1 auditor, 1 of 4 segments", auditors: 1, segments: 1}
	fragments = assurance{name: "1 auditor, 1 of 4 segments; 4 custodians of fragments", auditors: 1, segments: 1, fragments: 4}
	watched   = assurance{name: "1 auditor and an honest challenger", auditors: 1, segments: 1, watched: true}
)

var assurances = []assurance{
	audited,
	{name: "2 auditors, 2 of 4 segments each", auditors: 2, segments: 2},
	watched,
	{name: "3 replicas", replicas: 3},
	{name: "3 replicas and an honest challenger", replicas: 3, watched: true},
}

// shares of those who could find the fraud that are its accomplices.
var shares = []float64{0, 1.0 / 3, 1.0 / 2}

// Check returns an error unless the row is as the protocol promises: attacks do
// not pay, honest people lose no bond, and wrong results are accepted no more
// often than the formula says.
func (r *Row) Check() error {
	wrong := func(what string) error {
		return fmt.Errorf("%s (%s, dishonest %.2f): %s", r.Name, r.Policy, r.Dishonest, what)
	}
	switch {
	case r.HonestSlashed > 0:
		return wrong(fmt.Sprintf("%d honest people lost a bond", r.HonestSlashed))
	case r.ExpectedProfit >= 0:
		return wrong(fmt.Sprintf("it pays %.0f utally", r.ExpectedProfit))
	case !r.Within:
		return wrong(fmt.Sprintf("wrong results are accepted in %.3f of %d runs, the formula says %.3f", r.Accepted, r.Runs, r.Predicted))
	}
	return nil
}

// source returns the randomness of a row, which does not depend on what other
// rows are played.
func (e *experiment) source(seed uint64) *rand.Rand {
	h := canon.Sum(canon.Domain("sim/row"), fmt.Append(nil, e.Name, e.Policy, e.Dishonest))
	return rand.New(rand.NewPCG(seed, binary.LittleEndian.Uint64(h[:])))
}

// experiment is a row to be played.
type experiment struct {
	Row
	run     func(r *rand.Rand) (outcome, error)
	predict float64
}

// outcome is one run.
type outcome struct {
	profit  float64
	wrong   bool
	slashed int
}

// Adversaries plays the whole catalogue.
func Adversaries(ctx context.Context, o Options) ([]Row, error) {
	t, err := newTraining()
	if err != nil {
		return nil, err
	}
	all, err := catalogue(t)
	if err != nil {
		return nil, err
	}
	var rows []Row
	if o.Only != nil {
		all = slices.DeleteFunc(all, func(e experiment) bool { return !o.Only.MatchString(e.Name) })
	}
	for _, e := range all {
		row := e.Row
		r := e.source(o.Seed)
		row.Runs = o.Runs
		wrong := 0
		for range o.Runs {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			x, err := e.run(r)
			if err != nil {
				return nil, fmt.Errorf("%s (%s): %w", row.Name, row.Policy, err)
			}
			row.ExpectedProfit += x.profit / float64(o.Runs)
			row.HonestSlashed += x.slashed
			if x.wrong {
				wrong++
			}
		}
		row.Accepted, row.Predicted = float64(wrong)/float64(o.Runs), e.predict
		row.Within = within(row.Accepted, row.Predicted, o.Runs)
		rows = append(rows, row)
		if o.Told != nil {
			o.Told(len(rows), len(all), row.Name+", "+row.Policy)
		}
	}
	return rows, nil
}

// within reports whether a measured rate is one that chance explains.
func within(measured, p float64, runs int) bool {
	d := measured - p
	return d*d <= 16*p*(1-p)/float64(runs)+1e-12
}

// catalogue returns every adversary under every policy that concerns it.
func catalogue(t *training) (out []experiment, err error) {
	pay, err := t.rates().Pay(t.problem.UnitFLOPs(), 0)
	if err != nil {
		return nil, err
	}
	add := func(name, policy string, dishonest, predict float64, run func(r *rand.Rand) (outcome, error)) {
		out = append(out, experiment{Row{Name: name, Policy: policy, Dishonest: dishonest, UnitPay: float64(pay)}, run, predict})
	}
	for _, f := range forgeries {
		forged, err := f.forged(t)
		if err != nil {
			return nil, err
		}
		for _, a := range assurances {
			for _, s := range shares {
				switch {
				case a.replicas == 0:
					add(f.name, a.name, s, a.missing(s, forged), func(r *rand.Rand) (outcome, error) { return forge(t, f, a, s, r) })
				case s > 0: // or nobody is there to cheat
					add(f.name, a.name, s, a.colluding(s), func(r *rand.Rand) (outcome, error) { return replicate(t, f, a, s, r) })
				}
			}
		}
	}
	return slices.Concat(out, others(t, float64(pay)), dilemma(t, float64(pay))), nil
}

// forged returns how many segments of the unit a forgery gets wrong.
func (f forgery) forged(t *training) (n int, err error) {
	roots, _, err := f.states(t, t.problem.Start, 0)
	for g := 0; g < segments && err == nil; g++ {
		var honest []canon.Hash
		honest, err = t.play(roots[g*interval], 0, g*interval, (g+1)*interval)
		if err == nil && honest[interval] != roots[(g+1)*interval] {
			n++
		}
	}
	return n, err
}

// missing is the probability that no drawn auditor finds a unit wrong of which
// some segments are forged: each that is honest misses with that of drawing only
// the others; of dishonest ones, j are drawn by chance.
func (a assurance) missing(dishonest float64, forged int) float64 {
	if a.watched {
		return 0
	}
	bad := int(dishonest * validators)
	miss := hypergeometric(segments, forged, a.segments, 0)
	p := 0.0
	for j := 0; j <= a.auditors; j++ {
		p += hypergeometric(validators, bad, a.auditors, j) * math.Pow(miss, float64(a.auditors-j))
	}
	return p
}

// colluding is the probability that all replicas are accomplices.
func (a assurance) colluding(dishonest float64) float64 {
	if a.watched {
		return 0
	}
	return hypergeometric(validators, int(dishonest*validators), a.replicas, a.replicas)
}

// hypergeometric is the probability of j hits when k of n are drawn and m hit.
func hypergeometric(n, m, k, j int) float64 {
	return choose(m, j) * choose(n-m, k-j) / choose(n, k)
}

func choose(n, k int) float64 {
	if k < 0 || k > n {
		return 0
	}
	c := 1.0
	for i := range k {
		c = c * float64(n-i) / float64(i+1)
	}
	return c
}

// forge plays an order whose first unit a cheater makes up.
func forge(t *training, f forgery, a assurance, dishonest float64, r *rand.Rand) (outcome, error) {
	s, err := newScene(t, a, r)
	if err != nil {
		return outcome{}, err
	}
	s.attack.forge = f.states
	for i := range int(dishonest * validators) {
		s.colluders = append(s.colluders, validator(i))
	}
	return s.outcome(cheater)
}

func newScene(t *training, a assurance, r *rand.Rand) (*scene, error) {
	return newSceneOf(t, a, r, job.DefaultParams.WithoutForced())
}

func newSceneOf(t *training, a assurance, r *rand.Rand, rules job.Params) (*scene, error) {
	c := job.Conditions{Auditors: a.auditors, AuditSegments: a.segments}
	if a.fragments > 0 {
		c.Custodians, c.CodedBytes = a.fragments, 1
	}
	w, err := newWorld(t, r.Uint64(), c, rules)
	return &scene{world: w, watched: a.watched, ends: map[int][]canon.Hash{}, seen: map[string]bool{}, challenged: map[string]int{}}, err
}

// outcome plays a scene and says what became of it. What auditors earn that are
// accomplices is their own.
func (s *scene) outcome(adversaries ...string) (outcome, error) {
	if err := s.play(); err != nil {
		return outcome{}, err
	}
	honest, err := s.honest()
	x := outcome{wrong: s.lease.Round == rounds && s.lease.FinalRoot() != honest}
	bad := map[string]bool{}
	for _, a := range adversaries {
		x.profit += s.profit(a)
		bad[a] = true
	}
	for who, n := range s.slashed { // order: a count
		if n > 0 && !bad[who] && !slices.Contains(s.colluders, who) {
			x.slashed++
		}
	}
	return x, err
}

// honest returns the root that the order should end in.
func (t *training) honest() (canon.Hash, error) {
	at := t.problem.Start
	for r := range rounds {
		var ends []canon.Hash
		for shard := range shards {
			roots, err := t.play(at, r*shards+shard, 0, steps)
			if err != nil {
				return at, err
			}
			ends = append(ends, roots[steps])
		}
		var err error
		if at, err = t.merge(ends); err != nil {
			return at, err
		}
	}
	return at, nil
}

// replicate gives the first unit to several providers out of a pool. Accomplices
// all claim the same forged states. Where replicas differ, a game decides.
func replicate(t *training, f forgery, a assurance, dishonest float64, r *rand.Rand) (outcome, error) {
	bad := int(dishonest * validators)
	seed := canon.Sum(canon.Domain("sim/replicas"), fmt.Append(nil, r.Uint64()))
	w, err := newWorld(t, r.Uint64(), job.Conditions{}, job.DefaultParams.WithoutForced())
	if err != nil {
		return outcome{}, err
	}
	forged, computed, err := f.states(t, t.problem.Start, 0)
	if err != nil {
		return outcome{}, err
	}
	truth, err := t.play(t.problem.Start, 0, 0, steps)
	if err != nil {
		return outcome{}, err
	}
	var all []proof.Replica
	colluders := 0
	add := func(who string, roots []canon.Hash) {
		all = append(all, proof.Replica{Provider: who, Input: roots[0], Output: roots[steps]})
	}
	for _, i := range beacon.Lots(seed[:]).Pick(validators, a.replicas) {
		if i < bad {
			colluders++
			add(cheater, forged)
		} else {
			add(provider(1), truth)
		}
	}
	if a.watched { // whoever re-executes is one more
		add(honestChallenger, truth)
	}
	loser, err := t.judge(forged)
	if err != nil {
		return outcome{}, err
	}
	found := proof.Compare(t.problem.Start, [][]proof.Replica{all}, a.replicas, func(c proof.Claim) (bool, bool) {
		return c.Output != forged[steps] || loser != dispute.Defender, true
	})
	if colluders > 0 {
		w.spent[cheater] = uint64(computed) * t.problem.StepFLOPs // once for all of them
	}
	x := outcome{wrong: found.Accepted && found.Output != truth[steps]}
	bond, err := w.lease.Quote.Bond(&t.problem, &w.lease.Order.Conditions, &w.lease.Params, 0, w.lease.Order.Conditions.AuditSegments)
	if err != nil {
		return outcome{}, err
	}
	for _, who := range found.Wrong {
		if who == cheater {
			w.earned[cheater] -= int64(bond.Amount)
		} else {
			x.slashed++
		}
	}
	if x.wrong {
		w.earned[cheater] += int64(w.lease.Quote.Unit) * int64(colluders)
	}
	x.profit = w.profit(cheater)
	return x, nil
}

// judge plays the game between who claims forged states of the first unit and
// an honest party, and returns who loses.
func (t *training) judge(forged []canon.Hash) (dispute.Side, error) {
	key := canon.Root(forged)
	if loser, ok := t.verdicts[key]; ok {
		return loser, nil
	}
	s, err := newScene(t, watched, rand.New(rand.NewPCG(0, 0)))
	if err != nil {
		return dispute.Nobody, err
	}
	s.attack.forge = func(*training, canon.Hash, int) ([]canon.Hash, int, error) { return forged, 0, nil }
	x, err := s.outcome(cheater)
	if err != nil {
		return dispute.Nobody, err
	}
	t.verdicts[key] = dispute.Challenger
	if s.slashed[cheater] > 0 && x.slashed == 0 {
		t.verdicts[key] = dispute.Defender
	}
	return t.verdicts[key], nil
}
