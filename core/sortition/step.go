package sortition

import "math/big"

const (
	// steps is in how many parts the way to a target is divided.
	steps = 64
	// sumOfStep is what votes of a set on the way add up to, at most. A share of 2⁻²⁰ is the least that counts there.
	sumOfStep = 1 << 20
)

// Step returns the next set on the way from one to another: the target, or as near to it as Within allows. Sets are
// ascending by Member, with votes, and so is the result. Steps towards one target arrive at it: after five, where nobody
// is in both sets and neither has more than MaxSeats members.
//
// On the way, shares are mixed: 64 − t parts of what they were and t parts of the target, with the largest t that Within
// allows. Votes then add up to 2²⁰ or less. A set without members is no target, and from one there is no way: then
// the result is the set that has members.
func Step(from, target []Seat) []Seat {
	switch {
	case len(target) == 0:
		return from
	case len(from) == 0 || Within(from, target):
		return target
	}
	both := paired(from, target)
	a, b := sumOf(from), sumOf(target)
	for t := int64(steps - 1); t > 0; t-- {
		if next := mixed(both, a, b, t); Within(from, next) {
			return next
		}
	}
	return from
}

// Within reports whether the shares that members gain between two sets add up to 1/4 or less, exactly:
// Σ max(0, toⱼ/B − fromⱼ/A) ≤ 1/4, with A and B the sums of votes. A set without members is within itself alone.
//
// A quarter, because a header is signed by more than 2/3 of the new votes. These signers had more than 2/3 − 1/4 = 5/12 of
// the old ones, which is more than 1/3. So a light client that trusts the old set may go to the new one at once. Over
// two steps the overlap may be too small: 2/3 − 2/4 is less than 1/3.
func Within(from, to []Seat) bool {
	if len(from) == 0 || len(to) == 0 {
		return len(from) == len(to)
	}
	a, b := sumOf(from), sumOf(to)
	var gained, x, y big.Int
	for _, p := range paired(from, to) {
		x.Mul(x.SetUint64(p.to), a)
		if x.Sub(&x, y.Mul(y.SetUint64(p.from), b)).Sign() > 0 {
			gained.Add(&gained, &x)
		}
	}
	return gained.Lsh(&gained, 2).Cmp(a.Mul(a, b)) <= 0
}

// pair is what a member has in two sets.
type pair struct {
	member   string
	from, to uint64
}

// paired returns the members of two sets, ascending.
func paired(from, to []Seat) []pair {
	out := make([]pair, 0, len(from)+len(to))
	for len(from) > 0 || len(to) > 0 {
		switch {
		case len(to) == 0 || len(from) > 0 && from[0].Member < to[0].Member:
			out = append(out, pair{from[0].Member, from[0].Votes, 0})
			from = from[1:]
		case len(from) == 0 || to[0].Member < from[0].Member:
			out = append(out, pair{to[0].Member, 0, to[0].Votes})
			to = to[1:]
		default:
			out = append(out, pair{from[0].Member, from[0].Votes, to[0].Votes})
			from, to = from[1:], to[1:]
		}
	}
	return out
}

// mixed returns the set whose shares are (64 − t)/64 of the old ones and t/64 of the target's. a and b are the sums of votes of
// both. Each member has ⌊2²⁰ · (from · b · (64 − t) + to · a · t) / (64 · a · b)⌋.
func mixed(both []pair, a, b *big.Int, t int64) []Seat {
	stay, come := new(big.Int).Mul(b, big.NewInt(steps-t)), new(big.Int).Mul(a, big.NewInt(t))
	whole := new(big.Int).Mul(a, b)
	whole.Mul(whole, big.NewInt(steps))
	out := make([]Seat, 0, len(both))
	var x, y big.Int
	for _, p := range both {
		x.Mul(x.SetUint64(p.from), stay)
		x.Add(&x, y.Mul(y.SetUint64(p.to), come))
		x.Quo(x.Mul(&x, y.SetUint64(sumOfStep)), whole)
		if votes := x.Uint64(); votes > 0 {
			out = append(out, Seat{p.member, votes})
		}
	}
	return out
}

func sumOf(set []Seat) *big.Int {
	sum, votes := new(big.Int), new(big.Int)
	for _, s := range set {
		sum.Add(sum, votes.SetUint64(s.Votes))
	}
	return sum
}
