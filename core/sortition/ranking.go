package sortition

import (
	"cmp"
	"slices"
)

// Seat is what a member has.
type Seat struct {
	Member string
	Votes  uint64
}

// Ranking keeps the Most best of all that are offered: those with more votes first, and of equal ones the smaller name.
// Best has them in this order. The zero value keeps none.
type Ranking struct {
	Most int
	Best []Seat
}

// Offer keeps a seat if it is among the best. Who has no votes is not kept. A member is offered once.
func (r *Ranking) Offer(s Seat) {
	at, _ := slices.BinarySearchFunc(r.Best, s, ranked)
	if s.Votes == 0 || at >= r.Most {
		return
	}
	if len(r.Best) >= r.Most {
		r.Best = r.Best[:r.Most-1]
	}
	r.Best = slices.Insert(r.Best, at, s)
}

// Take removes a member, and returns the votes that it had; 0 if it is not among the best.
func (r *Ranking) Take(member string) (votes uint64) {
	r.Best = slices.DeleteFunc(r.Best, func(s Seat) bool {
		if s.Member == member {
			votes = s.Votes
		}
		return s.Member == member
	})
	return votes
}

func ranked(a, b Seat) int {
	return cmp.Or(cmp.Compare(b.Votes, a.Votes), cmp.Compare(a.Member, b.Member))
}
