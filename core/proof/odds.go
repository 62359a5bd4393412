package proof

import (
	"cmp"
	"slices"
)

// Certain is a probability of one: odds are counted in parts of 10⁹, in integers,
// so that they are the same everywhere.
const Certain = 1_000_000_000

// Missed returns the odds, rounded up, that an auditor which draws audited of n
// segments meets none of the forged ones: C(n−forged, audited) / C(n, audited).
// n is at most 2³⁰.
func Missed(n, forged, audited int) uint64 {
	odds := uint64(Certain)
	for i := range min(audited, n) {
		odds = ceil(odds*uint64(max(n-forged-i, 0)), uint64(n-i))
	}
	return odds
}

// Detected returns the odds, rounded down, that one of several auditors of a unit,
// each drawing by itself, meets a forged segment.
func Detected(n, forged, audited, auditors int) uint64 {
	return AtLeastOnce(Certain-Missed(n, forged, audited), auditors)
}

// AtLeastOnce returns the odds, rounded down, that of n independent tries, each of
// which succeeds with the given odds, one does.
func AtLeastOnce(odds uint64, n int) uint64 {
	missed, each := uint64(Certain), Certain-min(odds, Certain)
	for ; n > 0; n >>= 1 { // missed = eachⁿ
		if n&1 != 0 {
			missed = ceil(missed*each, Certain)
		}
		each = ceil(each*each, Certain)
	}
	return Certain - missed
}

func ceil(a, b uint64) uint64 { return (a + b - 1) / b }

// grace is how many valid units in a row a provider must have before it is audited
// less.
const grace = 10

// Audited returns how many segments of a unit an auditor re-executes, of a
// provider whose last record units were all valid: full at first, then in
// proportion to 10/record, but never fewer than floor. One failure makes the
// record zero. It is BOINC's adaptive replication with a floor: without one, a
// long record would buy a sure fraud.
func Audited(full, floor int, record uint64) int {
	if full == 0 || record <= grace {
		return full
	}
	less := (uint64(full)*grace + record - 1) / record
	return max(int(less), min(floor, full), 1)
}

// Largest returns the q segments with the largest updates, beside those that are
// audited anyway: a stolen state can be reached by small steps only if they are
// many, and a large one is where it was spliced. They are chosen beside a uniform
// draw, never in its place: who knows that only the largest are looked at makes
// some that are large and honest. Of equals the first comes first.
func Largest[T cmp.Ordered](sizes []T, q int, audited []int) []int {
	var order []int
	for s := range sizes {
		if !slices.Contains(audited, s) {
			order = append(order, s)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
	return order[:min(q, len(order))]
}
