package gateway

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/tally-network/tally/gateway/api"
)

// maxBodies bounds the bytes of all bodies that are in memory.
const maxBodies = 256 << 20

// comeAgain is told to those for whom there is no room. Replies take seconds.
const comeAgain = 2 * time.Second

// queue gives places to replies, first come, first served.
type queue struct {
	free             *semaphore.Weighted
	bodies           *semaphore.Weighted
	places           int64
	most             int64 // that wait
	patience         time.Duration
	running, waiting atomic.Int64
}

func newQueue(places, waiting int, patience time.Duration) *queue {
	return &queue{
		free: semaphore.NewWeighted(int64(places)), bodies: semaphore.NewWeighted(maxBodies),
		places: int64(places), most: int64(waiting), patience: patience,
	}
}

// busy says that there is no room.
func busy(format string, args ...any) error {
	return &api.Fault{Status: http.StatusServiceUnavailable, Code: "overloaded", Message: fmt.Sprintf(format, args...), Retry: comeAgain}
}

// enter waits for so many places at once. A request that wants more than there are takes all of them.
func (q *queue) enter(ctx context.Context, replies int) (leave func(), err error) {
	n := min(int64(replies), q.places)
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

// hold takes room for a body of so many bytes; −1 stands for one that does not say it.
func (q *queue) hold(bytes, most int64) (release func(), err error) {
	if bytes < 0 || bytes > most { // a longer one is refused once so much is read
		bytes = most
	}
	if !q.bodies.TryAcquire(bytes) {
		return nil, busy("the requests that are here take all room there is: try again later")
	}
	return func() { q.bodies.Release(bytes) }, nil
}
