package sim

import (
	"math/rand/v2"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
)

// asking is who asks custodians what, and what they can show.
type asking struct {
	who       string // asks; "" if nobody does
	custodian string // is asked
	times     int    // about each unit; 0: once, about one unit that the lease's seed picks
	has       func(q proof.Sample) bool
	asked     map[int]int // by unit
	forger    string      // a custodian whose fragments are wrong

	// proposes is the share of blocks whose proposer the asked custodian is: there it tries
	// others until it likes the question.
	proposes float64
	blocks   *rand.Rand
}

// block returns the hash of a block, from which questions are drawn.
func (s *scene) block() canon.Hash {
	k, seed := &s.asking, s.seed()
	if k.proposes == 0 || !slices.ContainsFunc(s.lease.Questions(), func(r *job.Question) bool { return r.Due == 0 }) || k.blocks.Float64() >= k.proposes {
		return seed
	}
	for !s.likes(seed) {
		seed = canon.Sum(canon.Domain("sim/block"), seed[:])
	}
	return seed
}

// likes reports whether the asked custodian could answer what would be drawn from a block.
func (s *scene) likes(seed canon.Hash) bool {
	l, _, err := job.Apply(s.lease, job.Tick{Seed: seed}, s.now)
	return err != nil || !slices.ContainsFunc(l.Questions(), func(r *job.Question) bool {
		q, drawn := l.Sample(r)
		return drawn && !s.asking.has(q)
	})
}

// ask lets who asks ask whatever it may.
func (s *scene) ask() (acted bool, err error) {
	k := &s.asking
	for i := range s.lease.Units {
		u := &s.lease.Units[i]
		if k.who == "" || k.asked[i] >= max(k.times, 1) || k.times == 0 && i != int(s.lease.Order.Nonce%251)%len(s.lease.Units) {
			continue
		}
		if u.Status < job.Counted || !u.Keeps(k.custodian) || s.lease.Question(k.custodian, i) != nil {
			continue
		}
		if s.lease.Phase == job.Closing && s.now >= s.lease.Windows.End {
			continue
		}
		if err := s.do(job.Ask{By: k.who, Custodian: k.custodian, Unit: i, Attempt: u.Attempt}); err != nil {
			return acted, err
		}
		if k.asked == nil {
			k.asked = map[int]int{}
		}
		k.asked[i]++
		acted = true
	}
	return acted, nil
}

// answer lets custodians show what they are asked for and have.
func (s *scene) answer() (acted bool, err error) {
	for _, r := range s.lease.Questions() {
		q, drawn := s.lease.Sample(r)
		if !drawn || s.now > r.Due || s.asking.has != nil && !s.asking.has(q) {
			continue
		}
		var shown proof.Shown
		if q.State < 0 {
			shown = q.ShowTensor(s.job.Data)
		} else if q.Of > 0 {
			kept, roots, err := s.fragments(r.Unit, r.Custodian, s.number(r.Unit, r.Custodian))
			if err != nil {
				return acted, err
			}
			if shown, err = q.ShowFragment(kept[q.State-1], roots); err != nil {
				return acted, err
			}
		} else if shown, err = q.ShowState(s.states[q.Root]); err != nil {
			return acted, err
		}
		if err := s.do(job.Answer{By: r.Custodian, Unit: r.Unit, Attempt: s.lease.Units[r.Unit].Attempt, Shown: shown}); err != nil {
			return acted, err
		}
		acted = true
	}
	return acted, nil
}

// fragment returns what a custodian attests to of a unit, nil if each keeps all.
func (s *scene) fragment(unit int, custodian string) (*job.Fragment, error) {
	if !s.lease.Order.Fragments().Cuts() {
		return nil, nil
	}
	number, _ := s.lease.FreeFragment(unit, custodian)
	_, roots, err := s.fragments(unit, custodian, number)
	return &job.Fragment{Number: number, Root: canon.Root(roots), Data: job.File{Role: "fragments", CID: "data"}}, err
}

// number returns the number of the fragment of a unit to which a custodian has attested.
func (s *scene) number(unit int, custodian string) int {
	attested := s.lease.Units[unit].Attested
	return attested[slices.IndexFunc(attested, func(a job.Attestation) bool { return a.Custodian == custodian })].Fragment.Number
}

// fragments returns what a custodian keeps of a unit, and the roots of that. A forger's has
// one bit wrong.
func (s *scene) fragments(unit int, custodian string, number int) (kept []*graph.State, roots []canon.Hash, err error) {
	for _, root := range s.lease.Units[unit].Receipt.Checkpoints[1:] {
		p, err := s.lease.Order.Fragments().Fragment(s.states[root], number)
		if err != nil {
			return nil, nil, err
		}
		if custodian == s.asking.forger {
			p.Tensors[0].Bytes()[0] ^= 1
		}
		if root, err = p.Root(); err != nil {
			return nil, nil, err
		}
		kept, roots = append(kept, p), append(roots, root)
	}
	return kept, roots, nil
}

// expose lets the challenger show what is wrong with a forger's fragments, which it hands
// over.
func (s *scene) expose() (acted bool, err error) {
	custodian := s.asking.forger
	for i := range s.lease.Units {
		if u := &s.lease.Units[i]; custodian == "" || u.Status < job.Received || !u.Keeps(custodian) {
			continue
		}
		number := s.number(i, custodian)
		kept, roots, err := s.fragments(i, custodian, number)
		if err != nil {
			return acted, err
		}
		truth := s.states[s.lease.Units[i].Receipt.Checkpoints[1]]
		w, err := proof.FindWrongFragment(s.lease.Order.Fragments(), number, 1, truth, kept[0], roots)
		if err != nil {
			return acted, err
		}
		if err := s.do(job.Expose{By: honestChallenger, Custodian: custodian, Unit: i, Attempt: s.lease.Units[i].Attempt, Wrong: *w}); err != nil {
			return acted, err
		}
		acted = true
	}
	return acted, nil
}
