package cpu

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/tally-network/tally/engine/cpu/kernel"
)

func TestWorkersStopWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := kernel.NewWorker()
	release := (&workspace{workers: []*kernel.Worker{w}}).stopWith(ctx)
	if w.Stopped() {
		t.Error("stopped before the context is done")
	}
	cancel()
	for deadline := time.Now().Add(time.Minute); !w.Stopped(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the worker goes on")
		}
	}
	if release(); w.Stop != nil {
		t.Error("the flag outlives the run")
	}
}
