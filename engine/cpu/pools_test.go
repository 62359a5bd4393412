package cpu

import (
	"runtime"
	"testing"
	"time"
)

// Threads serve the next run, and end when nobody can run anything any more.
func TestThreadsEndWithTheirExecutor(t *testing.T) {
	before := runtime.NumGoroutine()
	func() {
		p := newPools(3)
		first := p.take()
		other := p.take()
		if first == other {
			t.Fatal("two runs have the same threads")
		}
		p.give(first)
		if again := p.take(); again != first {
			t.Error("threads were started again")
		}
		for _, x := range []*threadPool{first, other} {
			done := make([]bool, 100)
			if err := x.run(len(done), 1, func(_, lo, hi int) error {
				for i := lo; i < hi; i++ {
					done[i] = true
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			for i, ok := range done {
				if !ok {
					t.Errorf("block %d was left out", i)
				}
			}
			p.give(x)
		}
		if n := runtime.NumGoroutine(); n < before+4 {
			t.Errorf("%d goroutines, and %d before: no threads wait", n, before)
		}
	}()
	for end := time.Now().Add(30 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines are left, %d were there before", runtime.NumGoroutine(), before)
		}
		runtime.GC()
	}
}
