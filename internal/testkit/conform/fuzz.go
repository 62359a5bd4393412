package conform

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tally-network/tally/engine"
)

// small is how many elements an output has at most where many cases count.
const small = 60

// Fuzz compares executors on as many small cases as TALLY_FUZZ_CASES says, and
// tells how many there were. Case n is always the same.
func Fuzz(t *testing.T, executors ...Make) {
	text := os.Getenv("TALLY_FUZZ_CASES")
	if text == "" {
		t.Skip("TALLY_FUZZ_CASES says how many cases: make fuzz-engine")
	}
	cases, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("TALLY_FUZZ_CASES: %v", err)
	}
	var done, wrong atomic.Int64
	begun, step := time.Now(), max(cases/20, 1)
	err = engine.Split(runtime.GOMAXPROCS(0), cases, 100, func(_, lo, hi int) error {
		for n := lo; n < hi; n++ {
			for _, make := range executors {
				if err := fuzzed(make, uint64(n)); err != nil {
					wrong.Add(1)
					t.Errorf("case %d: %v", n, err)
				}
			}
			if d := done.Add(1); d%int64(step) == 0 {
				t.Logf("%d cases, %d mismatches, %s", d, wrong.Load(), time.Since(begun).Round(time.Second))
			}
			if wrong.Load() > 20 {
				return fmt.Errorf("too many mismatches")
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d cases of %d executors, %d mismatches", done.Load(), len(executors), wrong.Load())
}

// fuzzed compares an executor on case n, on one thread or on two.
func fuzzed(make Make, n uint64) error {
	r := rand.New(rand.NewPCG(3<<32, n))
	x := []engine.Executor{make(1 + int(n)%2)}
	switch n % 8 {
	case 0:
		p, in := program(r, small)
		return Compare(x, p, in)
	case 1:
		p, in := fusibleOf(r, 1+r.IntN(3), 1+r.IntN(40))
		return Compare(x, p, in)
	}
	if n%64 == 2 {
		p, in := Blocks(r)
		return Compare(x, p, in)
	}
	p, in := Single(r, sized(r, pick(r, Functions...), small))
	return Compare(x, p, in)
}
