package tasks

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tally-network/tally/node/events"
)

func newTasks(limit int) *Set {
	return New(&events.Recorder{Name: "test", Log: slog.New(slog.DiscardHandler)}, limit)
}

func TestTasksRunOnceAndWithinTheirLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := newTasks(2)
		running, most, runs := 0, 0, 0
		release := make(chan struct{})
		for range 3 { // of each name one
			for _, name := range []string{"a", "b", "c"} {
				tasks.Start(t.Context(), name, func(context.Context) error {
					running++
					runs++
					most = max(most, running)
					<-release
					running--
					return nil
				})
				synctest.Wait()
			}
		}
		if running != 2 || runs != 2 {
			t.Fatalf("%d run after %d starts", running, runs)
		}
		close(release)
		tasks.Wait()
		if most != 2 || runs != 3 {
			t.Fatalf("%d ran together, %d in all", most, runs)
		}
	})
}

// Who only waits for a block lets another begin: else two answers to questions went into a block,
// however many were due.
func TestTasksThatWaitForABlockReleaseTheirSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := newTasks(1)
		waiting := 0
		block := make(chan struct{})
		for _, name := range []string{"a", "b", "c"} {
			tasks.Start(t.Context(), name, func(ctx context.Context) error {
				ReleaseSlot(ctx)
				ReleaseSlot(ctx)
				waiting++
				<-block
				return nil
			})
		}
		synctest.Wait()
		if waiting != 3 {
			t.Errorf("%d of three wait together", waiting)
		}
		close(block)
		tasks.Wait()
		ran := false
		tasks.Start(t.Context(), "d", func(context.Context) error { ran = true; return nil })
		if tasks.Wait(); !ran {
			t.Error("the slot is lost")
		}
	})
}

func TestTasksThatAreNotWantedEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := newTasks(1)
		var ended []string
		for _, name := range []string{"runs", "waits"} {
			tasks.Start(t.Context(), name, func(ctx context.Context) error {
				<-ctx.Done()
				ended = append(ended, name)
				return ctx.Err()
			})
			synctest.Wait()
		}
		tasks.Retain(func(name string) bool { return name != "waits" })
		synctest.Wait()
		if len(ended) != 0 {
			t.Fatalf("%v ended", ended)
		}
		tasks.Retain(func(string) bool { return false })
		tasks.Wait()
		if len(ended) != 1 || ended[0] != "runs" {
			t.Fatalf("%v ended; what only waited never began", ended)
		}
	})
}

// A task that fails is tried again ever more seldom, and at once after it has
// succeeded; one that was cancelled has not failed.
func TestTasksRestAfterFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := newTasks(0)
		told := 0
		tasks.recorder.Observe = func(e events.Event) {
			if e.Kind == events.Trouble {
				told++
			}
		}
		var result error
		runs := 0
		start := func() {
			tasks.Start(t.Context(), "task", func(context.Context) error {
				runs++
				return result
			})
			synctest.Wait()
		}
		result = errors.New("no luck")
		for range 600 { // blocks of 100 ms
			start()
			time.Sleep(100 * time.Millisecond)
		}
		if runs < 20 || runs > 30 {
			t.Errorf("a task that fails ran %d times in a minute", runs)
		}
		if told != runs-patient {
			t.Errorf("people were told of %d of %d failures", told, runs)
		}
		result = nil
		time.Sleep(longRest)
		start()
		runs = 0
		start()
		start()
		if runs != 2 {
			t.Errorf("after a success it ran %d times of 2", runs)
		}

		ctx, cancel := context.WithCancel(t.Context())
		tasks.Start(ctx, "cancelled", func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		cancel()
		synctest.Wait()
		again := false
		tasks.Start(t.Context(), "cancelled", func(context.Context) error {
			again = true
			return nil
		})
		tasks.Wait()
		if !again {
			t.Error("a cancelled task rests")
		}

		// Failures are forgotten.
		result = errors.New("no luck")
		for _, name := range []string{"x", "y"} {
			tasks.Start(t.Context(), name, func(context.Context) error { return result })
			synctest.Wait()
			time.Sleep(memory + longRest)
		}
		if len(tasks.failed) != 1 {
			t.Errorf("%d failures are remembered", len(tasks.failed))
		}
	})
}

// A task that panics about one order ends no other.
func TestTaskThatPanicsHasFailed(t *testing.T) {
	tasks, ended := newTasks(1), make(chan bool)
	tasks.Start(t.Context(), "bad", func(context.Context) error { panic("an order that nobody thought of") })
	tasks.Start(t.Context(), "good", func(context.Context) error { close(ended); return nil })
	<-ended
	tasks.Wait()
	tasks.mu.Lock()
	defer tasks.mu.Unlock()
	if tasks.failed["bad"].row != 1 {
		t.Error("a task that panicked counts as done")
	}
}
