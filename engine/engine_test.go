package engine

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

func TestSplitCoversEveryPieceOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		threads := rapid.IntRange(1, 6).Draw(t, "threads")
		n := rapid.IntRange(0, 500).Draw(t, "pieces")
		grain := rapid.IntRange(0, 100).Draw(t, "grain")
		done := make([]atomic.Int32, n)
		var busy sync.Map // workers at work
		err := Split(threads, n, grain, func(worker, lo, hi int) error {
			if worker < 0 || worker >= threads {
				return fmt.Errorf("worker %d of %d", worker, threads)
			}
			if _, twice := busy.LoadOrStore(worker, true); twice {
				return fmt.Errorf("worker %d is two goroutines", worker)
			}
			defer busy.Delete(worker)
			if hi-lo < grain && hi != n {
				return fmt.Errorf("range %d to %d is shorter than %d", lo, hi, grain)
			}
			for i := lo; i < hi; i++ {
				done[i].Add(1)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range done {
			if c := done[i].Load(); c != 1 {
				t.Fatalf("piece %d was done %d times", i, c)
			}
		}
	})
}

func TestSplitStopsAfterAnError(t *testing.T) {
	broken := errors.New("broken")
	for _, threads := range []int{1, 3} {
		var calls atomic.Int32
		err := Split(threads, 1000, 1, func(_, lo, _ int) error {
			calls.Add(1)
			return broken
		})
		if !errors.Is(err, broken) || int(calls.Load()) > threads {
			t.Errorf("%d threads: error %v after %d calls", threads, err, calls.Load())
		}
	}
}
