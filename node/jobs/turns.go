package jobs

import (
	"context"
	"slices"
	"sync"
)

// turns lets one at a time do what is seldom, and hungry. They are fair by consumer: each has
// one in turn, and never two in a row while others wait. So however many orders a consumer
// has, another's waits for the one that has its turn.
type turns struct {
	mu    sync.Mutex
	taken bool
	last  string  // the consumer who has had a turn last
	lines []*line // of those who wait, one for each consumer
}

// line are those who wait for a consumer, in the order in which they came. Each is told by
// closing its channel.
type line struct {
	consumer string
	waits    []chan struct{}
}

// take waits for a turn, which lasts until done is called.
func (t *turns) take(ctx context.Context, consumer string) (done func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t.mu.Lock()
	if !t.taken {
		t.taken, t.last = true, consumer
		t.mu.Unlock()
		return t.next, nil
	}
	mine := make(chan struct{})
	i := slices.IndexFunc(t.lines, func(l *line) bool { return l.consumer == consumer })
	if i < 0 {
		i = len(t.lines)
		t.lines = append(t.lines, &line{consumer: consumer})
	}
	t.lines[i].waits = append(t.lines[i].waits, mine)
	t.mu.Unlock()
	select {
	case <-mine:
		return t.next, nil
	case <-ctx.Done():
	}
	if !t.leave(mine) { // the turn came meanwhile
		t.next()
	}
	return nil, ctx.Err()
}

// next gives the turn to the first that waits for another consumer than it had, or else for
// the same.
func (t *turns) next() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) == 0 {
		t.taken = false
		return
	}
	i := max(0, slices.IndexFunc(t.lines, func(l *line) bool { return l.consumer != t.last }))
	l := t.lines[i]
	t.lines = slices.Delete(t.lines, i, i+1)
	t.last = l.consumer
	close(l.waits[0])
	if l.waits = l.waits[1:]; len(l.waits) > 0 {
		t.lines = append(t.lines, l)
	}
}

// leave takes somebody out of its line, and reports whether it was in one.
func (t *turns) leave(mine chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, l := range t.lines {
		if j := slices.Index(l.waits, mine); j >= 0 {
			if l.waits = slices.Delete(l.waits, j, j+1); len(l.waits) == 0 {
				t.lines = slices.Delete(t.lines, i, i+1)
			}
			return true
		}
	}
	return false
}
