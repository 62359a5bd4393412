package cpu

import "slices"

// shelf hands out ranges of memory before there is any: it says how much all of
// them take.
type shelf struct {
	taken []extent // in order
	high  int
}

type extent struct{ at, size int }

// line is what ranges are aligned to: a line of cache, and the widest register.
const line = 64

// put takes the tightest gap that size bytes fit in and returns where it begins.
func (s *shelf) put(size int) int {
	size = roundUp(max(size, 1), line)
	best, place, tightest, end := -1, 0, 0, 0
	for i, x := range s.taken {
		if gap := x.at - end; gap >= size && (best < 0 || gap < tightest) {
			best, place, tightest = i, end, gap
		}
		end = x.at + x.size
	}
	if best < 0 {
		best, place = len(s.taken), end
	}
	s.taken = slices.Insert(s.taken, best, extent{place, size})
	s.high = max(s.high, place+size)
	return place
}

// remove frees the range that begins at a place.
func (s *shelf) remove(at int) {
	s.taken = slices.DeleteFunc(s.taken, func(x extent) bool { return x.at == at })
}
