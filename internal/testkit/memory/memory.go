// Package memory measures what code under test takes from the heap.
//
// [Allocated] counts all that was allocated, and [Peak] what was held at once.
package memory

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// Slack is what work on untrusted bytes may take above their size.
const Slack = 64 << 20

// Allocated returns the bytes that f allocates, all of them, freed or not. It
// is above Peak, and follows how much f does.
func Allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// Peak returns by how many bytes the live heap grows at most while f runs. It
// collects garbage so often that it misses no more than a tenth. What f throws
// away while the collector works counts as live, which can be much on a busy
// machine: Peak runs f up to five times, until the least growth is fine. So f must
// not let go of what its last run left behind before it has taken as much again.
func Peak(f func(), fine func(peak int64) bool) int64 {
	least := peak(f)
	for range 4 {
		if fine(least) {
			break
		}
		least = min(least, peak(f))
	}
	return least
}

func peak(f func()) int64 {
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	runtime.GC()
	base := live()
	var most atomic.Int64
	var over atomic.Bool
	watch(&most, &over)
	f()
	over.Store(true)
	runtime.GC()
	return max(most.Load(), live()) - base
}

// watch notes the live heap at the end of every collection, until it is over.
func watch(most *atomic.Int64, over *atomic.Bool) {
	runtime.SetFinalizer(&sentinel{}, func(*sentinel) {
		if now := live(); now > most.Load() { // finalizers run one by one
			most.Store(now)
		}
		if !over.Load() {
			watch(most, over)
		}
	})
}

// sentinel is garbage. It has a pointer, so that it is alone in its memory.
type sentinel struct{ _ *byte }

func live() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
