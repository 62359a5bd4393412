package role

import (
	"context"
	"sync"
)

// Tasks runs named pieces of work in the background, each at most once at a
// time, and at most Limit of them together. What fails is reported and may be
// started again at the next block.
type Tasks struct {
	kit   *Kit
	limit chan struct{}
	mu    sync.Mutex
	stop  map[string]context.CancelFunc
	done  sync.WaitGroup
}

// NewTasks returns an empty set; limit 0 stands for no limit.
func (k *Kit) NewTasks(limit int) *Tasks {
	t := &Tasks{kit: k, stop: map[string]context.CancelFunc{}}
	if limit > 0 {
		t.limit = make(chan struct{}, limit)
	}
	return t
}

// Start runs do under name unless a task of that name runs or waits already.
func (t *Tasks) Start(ctx context.Context, name string, do func(context.Context) error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stop[name] != nil {
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
				defer func() { <-t.limit }()
			}
		}
		if err := do(ctx); err != nil && ctx.Err() == nil {
			t.kit.Log.Warn("will be tried again", "role", t.kit.Name, "task", name, "error", err)
			t.kit.Emit(Event{Kind: Trouble, Unit: -1, Text: name + ": " + err.Error()})
		}
	}()
}

// Running reports whether a task of this name runs or waits.
func (t *Tasks) Running(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stop[name] != nil
}

// Keep cancels every task whose name wanted does not accept.
func (t *Tasks) Keep(wanted func(name string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, cancel := range t.stop {
		if !wanted(name) {
			cancel()
		}
	}
}

// Len returns the number of tasks that run or wait.
func (t *Tasks) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.stop)
}

// Wait waits until all tasks have ended, after their context is done.
func (t *Tasks) Wait() { t.done.Wait() }
