package weights

import (
	"sync"

	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// slabs are memory in huge pages for weights that are smaller than one. A slab goes when nobody holds any weight in it.
type slabs struct {
	mu    sync.Mutex
	left  []byte // of the last one
	total int    // of all
}

// allocate returns n bytes, which begin at a line of the cache.
func (s *slabs) allocate(n int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	room := mem.RoundUp(n, mem.CacheLine)
	if room > tuning.LeastSlab/2 {
		return pages(n)
	}
	if room > len(s.left) {
		// As much again as there is, so that a small model takes little.
		s.left = pages(min(max(s.total, tuning.LeastSlab), tuning.GreatestSlab))
		s.total += len(s.left)
	}
	out := s.left[:n:room]
	s.left = s.left[room:]
	return out
}

// pages returns n bytes of their own, in huge pages as far as they go.
func pages(n int) []byte {
	b := bytesOf(make([]uint64, (n+7)/8))[:n]
	mem.HugePages(b)
	return b
}
