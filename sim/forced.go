package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
)

// draws is what a scene knows of forced attempts. Only the first attempt of the first
// unit can be one.
type draws struct {
	on       bool // the lease's rules force attempts
	altered  int  // the segment that is presented wrong; −1 if the attempt is not forced
	truth    []proof.Outcome
	hidden   bool         // its provider does not show the forced draw
	spared   bool         // it computes nothing but what it must show
	said     []canon.Hash // states after each step of the forced attempt, as its provider says
	idler    int          // place, among the unit's auditors, of one that does not look
	strategy string       // what it says: pass, copy, alarm; silent: nothing
}

// forcedDraw returns an output that forces an attempt, or does not.
func (s *scene) forcedDraw(unit, attempt int) []byte {
	out := make([]byte, 64)
	if unit > 0 || attempt > 0 || s.draws.altered < 0 {
		for i := range out {
			out[i] = 0xff
		}
	}
	return out
}

// present returns the states of a forced attempt: one bit is wrong at the end of a
// segment, and the next goes on from there. It remembers the truth.
func (s *scene) present(unit int, from canon.Hash) (roots []canon.Hash, err error) {
	s.draws.truth, roots = nil, []canon.Hash{from}
	for g := range segments {
		play := s.training.play
		if s.spares() {
			play = s.pretend
		}
		part, err := play(roots[g*interval], unit, g*interval, (g+1)*interval)
		if err != nil {
			return nil, err
		}
		o := given(part)
		s.draws.truth = append(s.draws.truth, o)
		if g == s.draws.altered {
			if part[interval], err = s.training.bend(o.End, 1); err != nil {
				return nil, err
			}
		}
		roots = append(roots, part[1:]...)
	}
	s.draws.said = roots
	return roots, nil
}

// spares reports whether a forced attempt is not computed.
func (s *scene) spares() bool { return s.draws.spared && s.draws.altered >= 0 }

// pretend returns states that look like those of steps.
func (s *scene) pretend(from canon.Hash, _, lo, hi int) (roots []canon.Hash, err error) {
	roots = []canon.Hash{from}
	for step := lo; step < hi && err == nil; step++ {
		var next canon.Hash
		next, err = s.training.bend(roots[len(roots)-1], 1)
		roots = append(roots, next)
	}
	return roots, err
}

// confess returns what the provider of a forced attempt shows as the truth. One that
// has spared itself the work does what was audited now, and hopes for the rest.
func (s *scene) confess(u *job.Unit) ([]proof.Outcome, error) {
	if !s.spares() {
		return s.draws.truth, nil
	}
	truth := slices.Clone(s.draws.truth)
	for _, g := range u.AuditedSegments() {
		roots, err := s.training.play(u.Receipt.Checkpoints[g], 0, g*interval, (g+1)*interval)
		if err != nil {
			return nil, err
		}
		s.spent[cheater] += s.problem.StepFLOPs * interval
		truth[g] = given(roots)
	}
	return truth, nil
}

// doubt lets the challenger re-execute what is shown as truth, and dispute what is none.
func (s *scene) doubt() (bool, error) {
	for _, f := range s.lease.Forced() {
		for g := range f.Truth {
			t := job.TruthTarget(f.Index, g)
			if s.seen[fmt.Sprint(t)] {
				continue
			}
			s.seen[fmt.Sprint(t)] = true
			points := f.Points(&s.problem, g)
			honest, err := s.training.play(points[0], f.Index, g*interval, (g+1)*interval)
			s.spent[honestChallenger] += s.problem.StepFLOPs * interval
			if err != nil {
				return false, err
			}
			if honest[interval] != f.Truth[g].End {
				return true, s.dispute(honestChallenger, t)
			}
		}
	}
	return false, nil
}

// given is what a segment gave, whose states begin and end with its checkpoints.
func given(roots []canon.Hash) proof.Outcome {
	last := len(roots) - 1
	return proof.Outcome{Before: roots[last-1], End: roots[last]}
}

// proveDraws lets providers show their forced draws.
func (s *scene) proveDraws() (acted bool, err error) {
	for shard, u := range s.lease.RoundUnits() {
		i := s.lease.Unit(s.lease.Round, shard)
		if !s.lease.ForcedDrawDue(i, s.now) || s.draws.hidden && i == 0 && u.Attempt == 0 {
			continue
		}
		e := job.ProveDraw{By: u.Provider, Unit: i, Attempt: u.Attempt, Output: s.forcedDraw(i, u.Attempt)}
		if proof.Forced(e.Output, s.lease.Params.ForcedBps) {
			if e.Truth, err = s.confess(&u); err != nil {
				return false, err
			}
		}
		if err := s.do(e); err != nil {
			return false, err
		}
		acted = true
	}
	return acted, nil
}

// idle lets an auditor that does not look say what it says, and reports whether an
// auditor is one.
func (s *scene) idle(unit int, u *job.Unit, auditor string) (idler, acted bool, err error) {
	if s.draws.strategy == "" || unit != 0 || u.Attempt != 0 || u.Audits[s.draws.idler].Auditor != auditor {
		return false, false, nil
	}
	others := slices.DeleteFunc(slices.Clone(u.Audits), func(a job.Audit) bool { return a.Auditor == auditor })
	said := func(a job.Audit) bool { return a.Done && a.Pass }
	if s.draws.strategy == "silent" || s.draws.strategy == "copy" && !slices.ContainsFunc(others, said) {
		return true, false, nil
	}
	secret := s.secret(u, auditor)
	var guesses []proof.Outcome // from what everybody knows
	for _, g := range proof.Segments(secret, segments, u.Audited) {
		guesses = append(guesses, proof.Outcome{Before: u.Receipt.Checkpoints[g], End: u.Receipt.Checkpoints[g+1]})
	}
	return true, true, s.do(job.Report{
		By: auditor, Unit: unit, Attempt: u.Attempt, Output: secret, Pass: s.draws.strategy != "alarm",
		Digest: proof.Digest(auditor, u.Receipt.ID(), guesses),
	})
}

// secret is the output of an auditor's VRF.
func (s *scene) secret(u *job.Unit, auditor string) []byte {
	h := canon.Sum(canon.Domain("sim/vrf"), []byte(auditor), proof.AuditInput(u.Receipt.ID(), auditor))
	return h[:]
}

// gain returns what somebody gains by how a scene is played, in utally, over what it
// has if it is played the other way: the mean over whether the first attempt is
// forced, with the odds that the rules have, and over the segments that may be wrong.
func gain(t *training, a assurance, r *rand.Rand, play, instead func(s *scene), who func(s *scene) string) (x outcome, err error) {
	forced := float64(job.DefaultParams.ForcedBps) / 1e4
	seed := r.Uint64()
	run := func(altered int, how func(s *scene)) (profit float64, err error) {
		s, err := newSceneOf(t, a, rand.New(rand.NewPCG(seed, 0)), job.DefaultParams)
		if err != nil {
			return 0, err
		}
		s.draws.on, s.draws.altered = true, altered
		how(s)
		got, err := s.outcome()
		x.wrong = x.wrong || got.wrong
		me := who(s)
		for account, n := range s.slashed { // order: a count
			if n > 0 && account != me {
				x.slashed++
			}
		}
		return s.profit(me), err
	}
	for altered := -1; altered < segments; altered++ {
		weight := forced / segments
		if altered < 0 {
			weight = 1 - forced
		}
		has, err := run(altered, play)
		if err != nil {
			return x, err
		}
		had, err := run(altered, instead)
		if err != nil {
			return x, err
		}
		x.profit += weight * (has - had)
	}
	return x, nil
}

// dilemma are those who would live on work that nobody checks.
func dilemma(t *training, pay float64) (out []experiment) {
	pair := assurance{name: "2 auditors, 1 of 4 segments each", auditors: 2, segments: 1}
	wide := assurance{name: "2 auditors, 2 of 4 segments each", auditors: 2, segments: 2}
	add := func(name string, a assurance, play, instead func(s *scene), who func(s *scene) string) {
		out = append(out, experiment{Row: Row{Name: name, Policy: a.name, UnitPay: pay}, run: func(r *rand.Rand) (outcome, error) {
			return gain(t, a, r, play, instead, who)
		}})
	}
	says := func(place int, what string) func(*scene) {
		return func(s *scene) { s.draws.idler, s.draws.strategy = place, what }
	}
	auditor := func(s *scene) string { return s.first[s.draws.idler] }
	add("lazy auditor", audited, says(0, "pass"), says(0, "silent"), auditor)
	add("lazy auditor", pair, says(0, "pass"), says(0, "silent"), auditor)
	add("copied audits", pair, says(1, "copy"), says(1, "silent"), auditor)
	add("copied audits", wide, says(1, "copy"), says(1, "silent"), auditor)
	add("blind alarms", audited, says(0, "alarm"), says(0, "silent"), auditor)
	add("freeloading challenger", audited, func(s *scene) { s.grief(0, 0) }, func(*scene) {}, func(*scene) string { return griever })
	add("spared segments of a forced attempt", watched, func(s *scene) { s.draws.spared = true }, func(*scene) {}, func(*scene) string { return cheater })
	add("forced draws never shown", audited, func(s *scene) { s.draws.hidden = true }, func(*scene) {}, func(*scene) string { return cheater })
	return out
}

// forcedNow reports whether a receipt is that of a forced attempt whose forced draw will be
// shown.
func (s *scene) forcedNow(t job.Target) bool {
	return t == job.UnitTarget(0) && s.draws.on && !s.draws.hidden && s.lease.Units[0].Attempt == 0 && s.draws.altered >= 0
}
