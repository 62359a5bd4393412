package mem

import "slices"

// Planner lays ranges of bytes into one arena before it is allocated. Call Allocate
// and Free in the order in which the ranges come to life and die; Bytes is then how
// large the arena must be. The zero value is an empty arena.
type Planner struct {
	Bytes int // that all ranges have taken at most

	taken []interval // in order
}

type interval struct{ at, size int }

// Allocate takes the tightest gap that size bytes fit in and returns the byte at which
// the range begins, a multiple of CacheLine.
func (s *Planner) Allocate(size int) int {
	size = RoundUp(max(size, 1), CacheLine)
	best, begin, tightest, end := -1, 0, 0, 0
	for i, x := range s.taken {
		if gap := x.at - end; gap >= size && (best < 0 || gap < tightest) {
			best, begin, tightest = i, end, gap
		}
		end = x.at + x.size
	}
	if best < 0 {
		best, begin = len(s.taken), end
	}
	s.taken = slices.Insert(s.taken, best, interval{begin, size})
	s.Bytes = max(s.Bytes, begin+size)
	return begin
}

// Free gives back the range that begins at a byte.
func (s *Planner) Free(at int) {
	s.taken = slices.DeleteFunc(s.taken, func(x interval) bool { return x.at == at })
}
