package bench

import (
	"bytes"
	"os"
	"strconv"
	"testing"

	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/internal/testkit/memory"
	"github.com/tally-network/tally/node/evidence"
)

// TestCraftedBundlesKeepMemory checks bundles whose validators, record and order
// are the attacker's own, so that everything in them is read. TALLY_BUNDLES says
// how many.
func TestCraftedBundlesKeepMemory(t *testing.T) {
	f, err := newForger(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	n := 3 * len(hostile)
	if text := os.Getenv("TALLY_BUNDLES"); text != "" {
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	sizes := []int{4 << 10, 1 << 20, 8 << 20}
	for i := range n {
		b, name, err := f.craft(i, sizes[i/len(hostile)%len(sizes)])
		if err != nil {
			t.Fatal(err)
		}
		limit := int64(4*len(b) + evidence.Room - len(b)) // the file is not in memory when tally verify reads it
		peak := memory.Peak(func() {
			_, err = evidence.Check(t.Context(), bytes.NewReader(b), int64(len(b)), evidence.Anybody, engine.Bounded(cpu.New(1), 1<<30))
		}, func(peak int64) bool { return peak <= limit })
		t.Logf("%s: %d bytes, peak %d MB: %.120v", name, len(b), peak>>20, err)
		if peak > limit {
			t.Errorf("%s of %d bytes takes %d MB, limit %d MB", name, len(b), peak>>20, limit>>20)
		}
		if name == honest && err != nil { // some others hold as well, until they are executed
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What was changed is refused, whoever signs.
func TestMutatedBundlesAreRefused(t *testing.T) {
	f, err := newForger(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		y := f.copied()
		if err := f.mutate(y); err != nil {
			t.Fatal(err)
		}
		b, err := f.bundle(y)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := evidence.Check(t.Context(), bytes.NewReader(b), int64(len(b)), evidence.Anybody, engine.Bounded(cpu.New(1), 1<<30)); err == nil {
			t.Errorf("bundle %d was changed, and nobody sees it", i)
		}
	}
}
