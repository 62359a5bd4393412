package cpu

import (
	"runtime"
	"testing"
	"time"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/merkle"
)

// A root is computed once, and forgotten with its tensor.
func TestRootsAreRemembered(t *testing.T) {
	var c rootCache
	x := tensor.Must(tensor.From(tensor.Shape{3}, []float32{1, 2, 3}))
	want := merkle.Root(x, 1)
	if got := c.root(x, 1); got != want {
		t.Fatal(got)
	}
	x.Set(0, 0) // nobody may: it shows that the root is not computed again
	if got := c.root(x, 1); got != want {
		t.Error("the root was computed again")
	}
	runtime.KeepAlive(x)
	x = nil
	for range 100 {
		runtime.GC()
		c.mu.Lock()
		n := len(c.of)
		c.mu.Unlock()
		if n == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("the root of a tensor that is gone is still there")
}
