package sim

import (
	"fmt"
	"math/rand/v2"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
)

// others are the adversaries that forge no unit, or do more than that. play sets the
// scene, and returns those whose profit counts.
func others(t *training, pay float64) (out []experiment) {
	add := func(name string, a assurance, play func(s *scene) []string) {
		out = append(out, experiment{Row: Row{Name: name, Policy: a.name, UnitPay: pay}, run: func(r *rand.Rand) (outcome, error) {
			s, err := newScene(t, a, r)
			if err != nil {
				return outcome{}, err
			}
			return s.outcome(play(s)...)
		}})
	}
	add("withheld data", audited, func(s *scene) []string {
		s.attack.withhold = true
		return []string{cheater}
	})
	for _, move := range []int{1, 2, 3, 5, 7, 9, 11} {
		add(fmt.Sprintf("silence from move %d on", move), watched, func(s *scene) []string {
			s.attack.forge = forgeries[0].states
			s.attack.silent = func(moves int) bool { return moves >= move }
			return []string{cheater}
		})
	}
	add("invalid openings", watched, func(s *scene) []string {
		s.attack.forge, s.attack.garbled = forgeries[0].states, true
		return []string{cheater}
	})
	add("wrong merge", watched, func(s *scene) []string {
		s.attack.merge = func(t *training, ends []canon.Hash) (canon.Hash, error) { return ends[0], nil }
		return []string{lead}
	})
	add("self-challenge", audited, func(s *scene) []string {
		s.attack.forge = forgeries[0].states
		s.challenges = func(i int, u *job.Unit) string {
			if u.Provider == cheater && i == 0 && u.Attempt == 0 {
				return griever
			}
			return ""
		}
		s.truthful = true
		return []string{cheater, griever}
	})
	questions(add)
	for _, g := range []struct {
		name  string
		again int
	}{{"griefing challenge", 0}, {"delay by repeated challenges", 3}} {
		add(g.name, audited, func(s *scene) []string { return s.grief(1, g.again) })
	}
	return out
}

// questions adds the adversaries who are asked for what they should keep, or ask.
func questions(add func(name string, a assurance, play func(s *scene) []string)) {
	last := func(q proof.Sample) bool { return q.State == segments }
	for _, k := range []struct {
		name     string
		has      func(proof.Sample) bool
		proposes float64
	}{
		{"custodian that keeps nothing", func(proof.Sample) bool { return false }, 0},
		{"custodian that keeps the last checkpoint", last, 0},
		{"custodian that redraws questions", last, 1.0 / 3},
	} {
		add(k.name, audited, func(s *scene) []string {
			s.asking = asking{
				who: honestChallenger, custodian: s.lease.Files.Custodians[0].Account, has: k.has,
				proposes: k.proposes, blocks: rand.New(rand.NewPCG(s.lease.Order.Nonce, 0)),
			}
			return []string{s.asking.custodian}
		})
	}
	add("custodian of a fragment that keeps nothing", fragments, func(s *scene) []string {
		s.asking = asking{who: honestChallenger, custodian: s.lease.Files.Custodians[3].Account, has: func(proof.Sample) bool { return false }}
		return []string{s.asking.custodian}
	})
	add("custodian of a wrong fragment", fragments, func(s *scene) []string {
		s.asking.forger = s.lease.Files.Custodians[3].Account
		return []string{s.asking.forger}
	})
	add("griefing questions", audited, func(s *scene) []string {
		s.asking = asking{who: griever, custodian: s.lease.Files.Custodians[0].Account, times: 8}
		return []string{griever}
	})
}

// grief lets somebody challenge the first attempt of a unit without looking, and
// again so many times.
func (s *scene) grief(unit, again int) []string {
	s.again = again
	s.challenges = func(i int, u *job.Unit) string {
		if i == unit && u.Attempt == 0 {
			return griever
		}
		return ""
	}
	return []string{griever}
}
