package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/tally-network/tally/gateway/api"
)

// maxBodies bounds the bytes of all bodies that are in memory.
const maxBodies = 256 << 20

// retryAfter is told to those for whom there is no room. Replies take seconds.
const retryAfter = 2 * time.Second

// queue admits replies, first come, first served.
type queue struct {
	free             *semaphore.Weighted
	bodies           *semaphore.Weighted
	parallel         int64 // replies that are admitted at once
	most             int64 // that wait
	patience         time.Duration
	running, waiting atomic.Int64
}

func newQueue(parallel, waiting int, patience time.Duration) *queue {
	return &queue{
		free: semaphore.NewWeighted(int64(parallel)), bodies: semaphore.NewWeighted(maxBodies),
		parallel: int64(parallel), most: int64(waiting), patience: patience,
	}
}

// busy says that there is no room.
func busy(format string, args ...any) error {
	return &api.Fault{Status: http.StatusServiceUnavailable, Code: "overloaded", Message: fmt.Sprintf(format, args...), Retry: retryAfter}
}

// enter waits until so many replies may run. A request that wants more than may run waits for all others to end.
func (q *queue) enter(ctx context.Context, replies int) (leave func(), err error) {
	n := min(int64(replies), q.parallel)
	if !q.free.TryAcquire(n) {
		if err := q.wait(ctx, n); err != nil {
			return nil, err
		}
	}
	q.running.Add(n)
	return func() {
		q.running.Add(-n)
		q.free.Release(n)
	}, nil
}

func (q *queue) wait(ctx context.Context, n int64) error {
	defer q.waiting.Add(-1)
	if q.waiting.Add(1) > q.most {
		return busy("%d requests wait already: try again later", q.most)
	}
	patient, cancel := context.WithTimeout(ctx, q.patience)
	defer cancel()
	if err := q.free.Acquire(patient, n); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return busy("there was no room for %v: try again later", q.patience)
	}
	return nil
}

// body takes room for what it reads.
type body struct {
	io.ReadCloser
	queue      *queue
	read, held int64
}

// bodyStep is how much room a body takes at a time, in bytes.
const bodyStep = 64 << 10

// hold returns a body that takes room as it comes: who says that much will come has nothing yet.
func (q *queue) hold(r io.ReadCloser) *body { return &body{ReadCloser: r, queue: q} }

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.read >= b.held {
		if !b.queue.bodies.TryAcquire(bodyStep) {
			return 0, busy("the requests that are here take all room there is: try again later")
		}
		b.held += bodyStep
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.held-b.read)])
	b.read += int64(n)
	return n, err
}

// release gives the room back.
func (b *body) release() { b.queue.bodies.Release(b.held) }
