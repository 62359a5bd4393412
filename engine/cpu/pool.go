package cpu

import (
	"runtime"
	"sync/atomic"

	"github.com/tally-network/tally/engine/cpu/mem"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// threadPool is the threads of one run at a time: goroutines, of which the caller's is the first.
// Idle ones spin for a while before they sleep, for most tasks are shorter than it takes to
// wake a thread.
type threadPool struct {
	size   int
	do     func(worker, lo, hi int) error
	n      int64 // blocks of the round
	grain  int64
	next   atomic.Int64 // block that is to be taken
	left   atomic.Int32 // threads still at work
	round  atomic.Uint32
	asleep []chan struct{} // where a sleeping thread waits; by worker
	sleeps []atomic.Bool
	failed atomic.Pointer[error]
	closed atomic.Bool
}

// newThreadPool starts size − 1 threads.
func newThreadPool(size int) *threadPool {
	t := &threadPool{size: size, asleep: make([]chan struct{}, size), sleeps: make([]atomic.Bool, size)}
	for w := 1; w < size; w++ {
		t.asleep[w] = make(chan struct{}, 1)
		go t.loop(w)
	}
	return t
}

// loop is the life of thread w.
func (t *threadPool) loop(w int) {
	for seen := uint32(0); ; seen++ {
		t.await(w, seen)
		if t.closed.Load() {
			return
		}
		t.runRanges(w)
		t.left.Add(-1)
	}
}

// await returns when there has been a round after the one seen.
func (t *threadPool) await(w int, seen uint32) {
	for i := 0; t.round.Load() == seen; i++ {
		if i < tuning.SpinLimit {
			if i%64 == 63 {
				runtime.Gosched()
			}
			continue
		}
		t.sleeps[w].Store(true)
		if t.round.Load() == seen {
			<-t.asleep[w]
		}
		t.sleeps[w].Store(false)
		i = 0
	}
}

// wake starts a round and wakes the threads that sleep.
func (t *threadPool) wake() {
	t.round.Add(1)
	for w := 1; w < t.size; w++ {
		if t.sleeps[w].Load() {
			select {
			case t.asleep[w] <- struct{}{}:
			default:
			}
		}
	}
}

// run calls do for ranges that together cover the blocks 0…n−1, each a multiple of grain
// but for the last. After an error no thread begins another range.
func (t *threadPool) run(n, grain int, do func(worker, lo, hi int) error) error {
	ranges := (n + grain - 1) / grain
	if t.size == 1 || ranges <= 1 {
		if n == 0 {
			return nil
		}
		return do(0, 0, n)
	}
	t.do, t.n, t.grain = do, int64(n), int64(max(grain, 1))
	t.failed.Store(nil)
	t.next.Store(0)
	t.left.Store(int32(t.size - 1))
	t.wake()
	t.runRanges(0)
	for i := 0; t.left.Load() > 0; i++ {
		if i%64 == 63 {
			runtime.Gosched()
		}
	}
	if err := t.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// runRanges runs ranges on thread w until none is left: long ones first, for neighbouring
// blocks share packing, and shorter ones as the end comes near, which balance the load.
func (t *threadPool) runRanges(w int) {
	for shares := int64(2 * t.size); ; {
		lo := t.next.Load()
		if lo >= t.n {
			return
		}
		hi := min(lo+int64(mem.RoundUp(int((t.n-lo+shares-1)/shares), int(t.grain))), t.n)
		if !t.next.CompareAndSwap(lo, hi) {
			continue
		}
		if err := t.do(w, int(lo), int(hi)); err != nil {
			t.failed.CompareAndSwap(nil, &err)
			t.next.Store(t.n)
			return
		}
	}
}

// close ends the threads.
func (t *threadPool) close() {
	t.closed.Store(true)
	t.wake()
}
