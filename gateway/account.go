package gateway

import (
	"context"
	"sync/atomic"
	"time"
)

// account is who pays for one request.
type account struct {
	server *Server
	key    *Key // nil: nobody
	began  time.Time
	wrote  atomic.Bool
}

// Name is the key's.
func (a *account) Name() string {
	if a.key == nil {
		return ""
	}
	return a.key.Name
}

// Enter waits for room.
func (a *account) Enter(ctx context.Context, replies int) (leave func(), err error) {
	return a.server.queue.enter(ctx, replies)
}

// Spend counts tokens, and takes them from the key's budget.
func (a *account) Spend(model string, read, written int) error {
	if written > 0 && !a.wrote.Swap(true) {
		a.server.metrics.first.Observe(time.Since(a.began).Seconds())
	}
	a.server.metrics.spend(model, read, written)
	return a.key.spend(int64(read + written))
}
