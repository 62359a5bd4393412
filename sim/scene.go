package sim

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
)

// scene is a world with its people's characters. Who has no special character is
// honest: computes, keeps, audits and merges as the protocol says, and disputes
// what its own audit finds wrong.
type scene struct {
	*world
	attack    attack
	watched   bool     // an honest challenger re-executes everything
	colluders []string // auditors that pass what the cheater does

	// challenges names who disputes a unit out of malice, if somebody does;
	// truthful: with the truth.
	challenges func(unit int, u *job.Unit) string
	again      int            // how often more it does so
	challenged map[string]int // how often it has
	truthful   bool

	asking asking

	draws draws
	first []string // auditors of the first attempt of the first unit

	ends map[int][]canon.Hash // the states that providers say their units had
	seen map[string]bool      // attempts that the challenger has looked at
}

// attack is what the cheater does that honest people do not. What is nil it does
// honestly.
type attack struct {
	forge    func(t *training, from canon.Hash, unit int) (roots []canon.Hash, computed int, err error) // the first unit
	merge    func(t *training, ends []canon.Hash) (canon.Hash, error)                                   // as the lead
	withhold bool                                                                                       // nobody gets the data of its receipts
	silent   func(moves int) bool                                                                       // in games
	garbled  bool                                                                                       // its moves are those of another game
}

// play lets everybody act until the lease has ended.
func (s *scene) play() error {
	for range 10_000 {
		if s.lease.Phase == job.Settled {
			return nil
		}
		acted, err := s.act()
		if err != nil {
			return err
		}
		if acted || s.draws.on { // forced draws fall due between ticks
			s.now += 1000
		} else {
			s.now = max(s.now+1000, min(s.lease.Wake(), s.now+600_000))
		}
		if err := s.do(job.Tick{Seed: s.block(), Affords: func(_ string, bond uint64) bool { return bond <= stake }}); err != nil && !errors.Is(err, job.ErrEnded) {
			return err
		}
	}
	return fmt.Errorf("the lease does not end: it is %v at round %d", s.lease.Phase, s.lease.Round)
}

// act lets everybody do once what is due.
func (s *scene) act() (acted bool, err error) {
	for _, f := range []func() (bool, error){s.assign, s.compute, s.attest, s.grieve, s.audit, s.watch, s.proveDraws, s.join, s.ask, s.answer, s.expose} {
		did, err := f()
		if err != nil {
			return false, err
		}
		acted = acted || did
	}
	return acted, nil
}

// assign gives the open units of the round to whoever may have them, the first
// unit to the cheater.
func (s *scene) assign() (bool, error) {
	acted := false
	for shard, u := range s.lease.RoundUnits() {
		i := s.lease.Unit(s.lease.Round, shard)
		may := slices.DeleteFunc(s.lease.Eligible(), func(p string) bool { return s.lease.Withheld(i, p) })
		if u.Status != job.Open || s.lease.Phase != job.Active || len(may) == 0 {
			continue
		}
		who := may[(i+1+u.Attempt)%len(may)]
		if i == 0 && u.Attempt == 0 {
			who = cheater
		}
		a := job.Acceptance{Order: s.lease.Order.ID(), Unit: i, Attempt: u.Attempt, Provider: who}
		err := s.do(job.Assign{By: s.lease.Lead(), Units: []job.Assignment{{
			Unit: i, Attempt: u.Attempt, Signature: ed25519.Sign(key(who), a.SignBytes()),
			Standing: job.Standing{Provider: who, Free: math.MaxUint64, Staked: math.MaxUint64},
		}}})
		if err != nil {
			return false, err
		}
		acted = true
	}
	return acted, nil
}

// compute lets providers post receipts.
func (s *scene) compute() (bool, error) {
	acted := false
	for shard, u := range s.lease.RoundUnits() {
		if u.Status != job.Assigned || !s.lease.ForcedDrawn(s.lease.Unit(s.lease.Round, shard)) {
			continue
		}
		i, from := s.lease.Unit(s.lease.Round, shard), s.lease.RoundStart(s.lease.Round)
		roots, computed, err := s.unit(u.Provider, i, u.Attempt, from)
		if err != nil {
			return false, err
		}
		s.spent[u.Provider] += s.problem.StepFLOPs * uint64(computed)
		s.ends[i] = roots
		r := job.Receipt{
			Order: s.lease.Order.ID(), Unit: i, Attempt: u.Attempt, Provider: u.Provider, Start: from,
			Checkpoints: checkpoints(roots), FLOPs: s.problem.UnitFLOPs(), Data: job.File{Role: "receipt", CID: "data"},
		}
		if err := s.do(job.Submit{Receipt: r, Signature: ed25519.Sign(key(u.Provider), r.SignBytes())}); err != nil {
			return false, err
		}
		acted = true
	}
	return acted, nil
}

// unit returns the states that a provider says a unit had after each step, and
// how many steps it has computed for that.
func (s *scene) unit(who string, unit, attempt int, from canon.Hash) ([]canon.Hash, int, error) {
	if who == cheater && unit == 0 && attempt == 0 && s.attack.forge != nil {
		return s.attack.forge(s.training, from, unit)
	}
	if s.draws.on && unit == 0 && attempt == 0 {
		roots, err := s.present(unit, from)
		if s.spares() {
			return roots, 0, err
		}
		return roots, steps, err
	}
	roots, err := s.training.play(from, unit, 0, steps)
	return roots, steps, err
}

// attest lets custodians say that they have the data.
func (s *scene) attest() (bool, error) {
	acted := false
	if u := &s.lease.Units[0]; s.first == nil && len(u.Audits) > 0 {
		for _, a := range u.Audits {
			s.first = append(s.first, a.Auditor)
		}
	}
	for shard, u := range s.lease.RoundUnits() {
		if u.Status != job.Received && u.Status != job.Counted || u.Provider == cheater && s.attack.withhold {
			continue
		}
		i := s.lease.Unit(s.lease.Round, shard)
		for _, k := range u.Attested {
			if !s.lease.MayAttest(i, k.Custodian) {
				continue
			}
			fragment, err := s.fragment(i, k.Custodian)
			if err != nil {
				return false, err
			}
			if err := s.do(job.Attest{By: k.Custodian, Unit: i, Attempt: u.Attempt, Fragment: fragment}); err != nil {
				return false, err
			}
			acted = true
		}
	}
	return acted, nil
}

// audit lets auditors answer, and those who found a mistake dispute it.
func (s *scene) audit() (bool, error) {
	acted := false
	for shard, u := range s.lease.RoundUnits() {
		if u.Status != job.Counted {
			continue
		}
		i := s.lease.Unit(s.lease.Round, shard)
		for _, a := range u.Audits {
			if a.Done || a.Forfeit {
				continue
			}
			if idler, did, err := s.idle(i, &u, a.Auditor); idler {
				if err != nil {
					return false, err
				}
				acted = acted || did
				continue
			}
			pass, err := s.examine(i, &u, a.Auditor)
			if err != nil {
				return false, err
			}
			acted = true
			if !pass { // and the unit is another's from now on
				return true, s.dispute(a.Auditor, job.UnitTarget(i))
			}
		}
	}
	return acted, nil
}

// examine lets an auditor re-execute the segments that it draws, and report.
func (s *scene) examine(unit int, u *job.Unit, auditor string) (pass bool, err error) {
	secret := s.secret(u, auditor)
	var outcomes []proof.Outcome
	pass = true
	if u.Provider != cheater || !slices.Contains(s.colluders, auditor) {
		points := u.Receipt.Checkpoints
		for _, g := range proof.Segments(secret, segments, u.Audited) {
			lo, hi := g*interval, (g+1)*interval
			s.spent[auditor] += s.problem.StepFLOPs * uint64(hi-lo)
			roots, err := s.training.play(points[g], unit, lo, hi)
			if err != nil {
				return false, err
			}
			outcomes = append(outcomes, given(roots))
			pass = pass && roots[hi-lo] == points[g+1]
		}
	}
	return pass, s.do(job.Report{By: auditor, Unit: unit, Attempt: u.Attempt, Output: secret, Pass: pass, Digest: proof.Digest(auditor, u.Receipt.ID(), outcomes)})
}

// grieve lets those who challenge out of malice do it.
func (s *scene) grieve() (bool, error) {
	if s.challenges == nil {
		return false, nil
	}
	for shard, u := range s.lease.RoundUnits() {
		i := s.lease.Unit(s.lease.Round, shard)
		who := s.challenges(i, &u)
		if u.Status == job.Counted && who != "" && s.challenged[who] <= s.again {
			s.challenged[who]++
			return true, s.dispute(who, job.UnitTarget(i))
		}
	}
	return false, nil
}

// watch lets the challenger re-execute what it has not seen, and dispute what is
// wrong.
func (s *scene) watch() (bool, error) {
	if !s.watched {
		return false, nil
	}
	if bad, err := s.doubt(); bad || err != nil {
		return bad, err
	}
	look := func(t job.Target, wrong func() (bool, error)) (bool, error) {
		name := fmt.Sprint(t, s.lease.Attempt(t))
		if s.seen[name] || len(s.lease.DisputesAbout(t, s.lease.Attempt(t))) > 0 {
			return false, nil
		}
		s.seen[name] = true
		bad, err := wrong()
		if err == nil && bad {
			err = s.dispute(honestChallenger, t)
		}
		return bad, err
	}
	for shard, u := range s.lease.RoundUnits() {
		if u.Status != job.Counted && u.Status != job.Accepted {
			continue
		}
		i := s.lease.Unit(s.lease.Round, shard)
		if bad, err := look(job.UnitTarget(i), func() (bool, error) {
			roots, err := s.training.play(u.Receipt.Start, i, 0, steps)
			s.spent[honestChallenger] += s.problem.UnitFLOPs()
			return err == nil && !slices.Equal(checkpoints(roots), u.Receipt.Checkpoints), err
		}); bad || err != nil {
			return true, err
		}
	}
	for r := range s.lease.Round {
		m := s.lease.Merges[r]
		if bad, err := look(job.MergeTarget(r), func() (bool, error) {
			root, err := s.training.merge(m.Inputs)
			return root != m.Root, err
		}); bad || err != nil {
			return true, err
		}
	}
	return false, nil
}

// join lets the lead merge a round whose units are accepted.
func (s *scene) join() (bool, error) {
	if !s.lease.AwaitsMerge() {
		return false, nil
	}
	ends := s.lease.Ends(s.lease.Round)
	by := s.lease.Lead()
	merge := s.training.merge
	if by == lead && s.attack.merge != nil {
		merge = func(ends []canon.Hash) (canon.Hash, error) { return s.attack.merge(s.training, ends) }
	}
	if by == "" {
		return s.succeed()
	}
	root, err := merge(ends)
	if err != nil {
		return false, err
	}
	return true, s.do(job.PostMerge{By: by, Round: s.lease.Round, Root: root, Data: job.File{Role: "merge", CID: "data"}})
}

// succeed lets the next in line lead, where the lead was dismissed.
func (s *scene) succeed() (bool, error) {
	for _, l := range s.lease.Leads {
		if s.lease.MayTakeLead(l.Account, s.now) {
			return true, s.do(job.TakeLead{By: l.Account})
		}
	}
	return false, nil
}

// dispute plays the game that somebody opens, to its end.
func (s *scene) dispute(challenger string, t job.Target) error {
	attempt := s.attempt(t)
	subject, err := s.lease.Subject(t, attempt)
	if err != nil {
		return err
	}
	defends, doubts, points, err := s.accounts(challenger, t)
	if err != nil {
		return err
	}
	opening, err := dispute.Challenge(subject.Claim, points, doubts)
	if err != nil {
		return err
	}
	s.games++
	defender := subject.Defender
	bond, err := s.lease.ChallengeBond(t, opening.Segment)
	if err != nil {
		return err
	}
	if err := s.do(job.OpenDispute{ID: s.games, Target: t, Attempt: attempt, Segment: opening.Segment, Challenger: challenger}); err != nil {
		return err
	}
	g, err := dispute.Open(subject.Claim, dispute.DefaultRules, opening, s.now)
	if err != nil {
		return err
	}
	if s.now += 1000; s.forcedNow(t) { // its provider has no reason to play
		_, err := s.proveDraws()
		return err
	}
	for g.Stage != dispute.Over {
		who, account := defender, defends
		if g.Stage.Turn() == dispute.Challenger {
			who, account = challenger, doubts
		}
		s.now += 1000
		if g, err = s.move(g, who, account); err != nil {
			return err
		}
	}
	if g.Loser == dispute.Challenger {
		s.forfeit(bond, challenger, defender)
	}
	return s.do(job.CloseDispute{ID: s.games, Loser: g.Loser})
}

// attempt returns the one that a dispute would be about. A scene has one forced
// attempt at most.
func (s *scene) attempt(t job.Target) int {
	if t.Kind() == job.AboutTruth {
		return s.lease.Forced()[0].Unit.Attempt
	}
	return s.lease.Attempt(t)
}

// move lets the side whose turn it is move, or its clock run out.
func (s *scene) move(g dispute.Game, who string, account dispute.Witness) (dispute.Game, error) {
	silence := func() dispute.Game {
		s.now = g.Deadline() + 1
		return dispute.Expire(g, s.now)
	}
	bad := who == cheater || who == lead || who == griever
	if bad && s.attack.silent != nil && s.attack.silent(g.Moves) {
		return silence(), nil
	}
	m, err := dispute.Play(&g, account)
	if errors.Is(err, dispute.ErrAgree) {
		return silence(), nil
	}
	if err != nil {
		return g, err
	}
	if bad && s.attack.garbled {
		m = garble(m)
	}
	next, err := dispute.Apply(g, g.Stage.Turn(), m, s.now)
	if bad && errors.Is(err, dispute.ErrMove) {
		return silence(), nil // it has nothing better
	}
	return next, err
}

// accounts returns what both sides say about the work in question, and the
// checkpoints of a unit.
func (s *scene) accounts(challenger string, t job.Target) (defends, doubts dispute.Witness, points []canon.Hash, err error) {
	i := t.Index()
	switch t.Kind() {
	case job.AboutMerge:
		m := s.lease.Merges[i]
		truth, err := s.training.merge(m.Inputs)
		return mergeAccount{s.training, m.Inputs, m.Root}, mergeAccount{s.training, m.Inputs, truth}, nil, err
	case job.AboutTruth:
		g := t.Segment()
		points, first := s.lease.Forced()[0].Points(&s.problem, g), g*interval
		honest, err := s.training.play(points[0], i, first, first+interval)
		said := slices.Clone(s.draws.said[first : first+interval+1])
		said[interval] = s.draws.truth[g].End
		return account{s.training, i, first, said}, account{s.training, i, first, honest}, points, err
	}
	r := s.lease.Units[i].Receipt
	honest, err := s.doubted(challenger, i, r)
	return account{s.training, i, 0, s.ends[i]}, account{s.training, i, 0, honest}, r.Checkpoints, err
}

// doubted returns the states that a challenger sets against a receipt: those of
// an honest run, or if it is a griever, which has not looked, those of the receipt
// but the last.
func (s *scene) doubted(challenger string, unit int, r *job.Receipt) ([]canon.Hash, error) {
	if challenger != griever || s.truthful {
		return s.training.play(r.Start, unit, 0, steps)
	}
	roots := slices.Clone(s.ends[unit])
	var err error
	roots[steps], err = s.training.bend(roots[steps], 1)
	return roots, err
}
