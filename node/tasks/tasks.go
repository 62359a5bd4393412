// Package tasks runs what roles do in the background, by name, and again after failures.
//
// Make a [Set] with [New]. On every block a role calls [Set.Start] for all that is missing.
// [Set.Retain] cancels what is not wanted any more, and [Set.Wait] waits for all to end.
//
// Invariants: what runs already, waits or rests is not begun twice. No more tasks run at
// once than the set's limit, less those that only wait ([ReleaseSlot]). A task that panics
// has failed, and ends no other.
package tasks

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"sync"
	"time"

	"github.com/tally-network/tally/node/events"
)

// Set runs named pieces of work in the background, each at most once at a
// time, and at most so many of them together. What fails rests for a while
// before it starts again; what goes on failing is reported.
type Set struct {
	recorder *events.Recorder
	limit    chan struct{}
	mu       sync.Mutex
	stop     map[string]context.CancelFunc
	failed   map[string]failure
	done     sync.WaitGroup
}

// slotKey keys the function that releases a task's slot, in the task's context.
type slotKey struct{}

// ReleaseSlot lets another task of the set begin while the one whose context this is only
// waits. It does nothing outside of a task, or a second time.
func ReleaseSlot(ctx context.Context) {
	if release, ok := ctx.Value(slotKey{}).(func()); ok {
		release()
	}
}

// failure is how often a task has failed in a row, and until when it rests.
type failure struct {
	row   int
	until time.Time
}

// The rest after a failure, which doubles with each; and when it is forgotten.
const (
	firstRest = 100 * time.Millisecond
	longRest  = 3 * time.Second
	memory    = time.Minute
	patient   = 2 // failures in a row before people are told: somebody is not ready yet
)

// New returns an empty set; limit 0 stands for no limit.
func New(r *events.Recorder, limit int) *Set {
	t := &Set{recorder: r, stop: map[string]context.CancelFunc{}, failed: map[string]failure{}}
	if limit > 0 {
		t.limit = make(chan struct{}, limit)
	}
	return t
}

// Start runs do under name unless a task of that name runs, waits or rests.
func (t *Set) Start(ctx context.Context, name string, do func(context.Context) error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stop[name] != nil || time.Now().Before(t.failed[name].until) {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	t.stop[name] = cancel
	t.done.Add(1)
	go func() {
		defer t.done.Done()
		defer func() {
			t.mu.Lock()
			delete(t.stop, name)
			t.mu.Unlock()
			cancel()
		}()
		if t.limit != nil {
			select {
			case <-ctx.Done():
				return
			case t.limit <- struct{}{}:
				release := sync.OnceFunc(func() { <-t.limit })
				defer release()
				ctx = context.WithValue(ctx, slotKey{}, release)
			}
		}
		err := guarded(ctx, do)
		if ctx.Err() != nil {
			return
		}
		if row := t.note(name, err); row > patient {
			t.recorder.Log.Warn("will be tried again", "task", name, "error", err)
			t.recorder.Emit(events.Event{Kind: events.Trouble, Unit: -1, Text: name + ": " + err.Error()})
		} else if err != nil {
			t.recorder.Log.Debug("will be tried again", "task", name, "error", err)
		}
	}()
}

// guarded runs a task. One that panics has failed: whatever an order makes of it, the role's
// other orders go on.
func guarded(ctx context.Context, do func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a defect of this program: %v\n%s", p, debug.Stack())
		}
	}()
	return do(ctx)
}

// note remembers how a task ended, and returns how often it has failed in a row.
func (t *Set) note(name string, err error) (row int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(t.failed, func(_ string, f failure) bool { return now.Sub(f.until) > memory })
	if err == nil {
		delete(t.failed, name)
		return 0
	}
	f := t.failed[name]
	t.failed[name] = failure{f.row + 1, now.Add(min(firstRest<<min(f.row, 10), longRest))}
	return f.row + 1
}

// Retain cancels every task whose name wanted does not accept.
func (t *Set) Retain(wanted func(name string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, cancel := range t.stop {
		if !wanted(name) {
			cancel()
		}
	}
}

// Wait waits until all tasks have ended, after their context is done.
func (t *Set) Wait() { t.done.Wait() }
