package sim

import (
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
)

// asking is who asks keepers what, and what they can show.
type asking struct {
	who    string // asks; "" if nobody does
	keeper string // is asked
	times  int    // about each unit; 0: once, about one unit that the lease's seed picks
	has    func(q proof.Question) bool
	asked  map[int]int // by unit
}

// ask lets who asks ask whatever it may.
func (s *scene) ask() (acted bool, err error) {
	k := &s.asking
	for i := range s.lease.Units {
		u := &s.lease.Units[i]
		if k.who == "" || k.asked[i] >= max(k.times, 1) || k.times == 0 && i != int(s.lease.Seed[0])%len(s.lease.Units) {
			continue
		}
		if u.Status < job.Counted || !u.Keeps(k.keeper) || s.lease.Request(k.keeper, i) != nil {
			continue
		}
		if s.lease.Phase == job.Closing && s.now >= s.lease.WindowEnd {
			continue
		}
		if err := s.do(job.Ask{By: k.who, Keeper: k.keeper, Unit: i, Attempt: u.Attempt}); err != nil {
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

// answer lets keepers show what they are asked for and have.
func (s *scene) answer() (acted bool, err error) {
	for i := len(s.lease.Requests) - 1; i >= 0; i-- {
		r := s.lease.Requests[i]
		q, drawn := s.lease.Question(&r)
		if !drawn || s.now > r.Due || s.asking.has != nil && !s.asking.has(q) {
			continue
		}
		var shown proof.Shown
		if q.State < 0 {
			shown = q.ShowTensor(s.work.Data)
		} else if shown, err = q.ShowState(s.states[q.Root]); err != nil {
			return acted, err
		}
		if err := s.do(job.Answer{By: r.Keeper, Unit: r.Unit, Attempt: s.lease.Units[r.Unit].Attempt, Shown: shown}); err != nil {
			return acted, err
		}
		acted = true
	}
	return acted, nil
}
