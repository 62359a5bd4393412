package engine

import (
	"sync"
	"sync/atomic"
)

// Split calls do for ranges that together cover 0…n−1, on at most the given
// number of goroutines, of which the caller's is one. No range is shorter than
// grain, but for the last. worker numbers the goroutine, from 0. Split returns
// when all calls have; after an error it starts no more of them.
func Split(threads, n, grain int, do func(worker, lo, hi int) error) error {
	grain = max(grain, 1)
	threads = min(threads, (n+grain-1)/grain)
	if threads <= 1 {
		if n == 0 {
			return nil
		}
		return do(0, 0, n)
	}
	// A few ranges for each thread even out what other work takes from them.
	step := max(grain, (n+4*threads-1)/(4*threads))
	s := split{n: n, step: step, do: do}
	s.wg.Add(threads - 1)
	for w := 1; w < threads; w++ {
		go func() {
			defer s.wg.Done()
			s.work(w)
		}()
	}
	s.work(0)
	s.wg.Wait()
	return s.err
}

type split struct {
	n, step int
	do      func(worker, lo, hi int) error
	next    atomic.Int64
	wg      sync.WaitGroup
	once    sync.Once
	err     error
}

func (s *split) work(worker int) {
	for {
		hi := int(s.next.Add(int64(s.step)))
		lo := hi - s.step
		if lo >= s.n {
			return
		}
		if err := s.do(worker, lo, min(hi, s.n)); err != nil {
			s.once.Do(func() { s.err = err })
			s.next.Store(int64(s.n))
			return
		}
	}
}
