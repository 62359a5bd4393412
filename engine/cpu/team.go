package cpu

import (
	"runtime"
	"sync/atomic"

	"github.com/tally-network/tally/engine/cpu/mem"
)

// team is the goroutines of one run, of which the caller's is the first. Those
// without work look for it for a while before they sleep: most tasks are shorter
// than it takes to wake somebody.
type team struct {
	size   int
	do     func(worker, lo, hi int) error
	n      int64
	grain  int64
	next   atomic.Int64 // piece that is to be taken
	left   atomic.Int32 // members still at work
	round  atomic.Uint32
	asleep []chan struct{} // where a sleeping member waits; by worker
	sleeps []atomic.Bool
	failed atomic.Pointer[error]
	closed atomic.Bool
}

// patience is how often a member looks for work before it sleeps, some hundred
// microseconds long: the wait for another member's last piece, or for a task that has
// but one, is no longer as a rule.
const patience = 40000

func newTeam(size int) *team {
	t := &team{size: size, asleep: make([]chan struct{}, size), sleeps: make([]atomic.Bool, size)}
	for w := 1; w < size; w++ {
		t.asleep[w] = make(chan struct{}, 1)
		go t.member(w)
	}
	return t
}

func (t *team) member(w int) {
	for seen := uint32(0); ; seen++ {
		t.await(w, seen)
		if t.closed.Load() {
			return
		}
		t.take(w)
		t.left.Add(-1)
	}
}

// await returns when there has been a round after the one seen.
func (t *team) await(w int, seen uint32) {
	for i := 0; t.round.Load() == seen; i++ {
		if i < patience {
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

// begin starts a round and wakes who sleeps.
func (t *team) begin() {
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

// split calls do for ranges that together cover 0…n−1, each of at least grain
// pieces but for the last, or a multiple of it.
func (t *team) split(n, grain int, do func(worker, lo, hi int) error) error {
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
	t.begin()
	t.take(0)
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

// take runs ranges until none is left: long ones first, for neighbouring pieces
// share work, and shorter ones as the end comes near, which even out what other
// work takes from the members.
func (t *team) take(w int) {
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

// close ends the members.
func (t *team) close() {
	t.closed.Store(true)
	t.begin()
}
