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

// Owner is the key's. Where no keys are, whoever can call is at the machine.
func (a *account) Owner() bool { return a.key == nil || a.key.Owner }

// Reserve takes tokens from the key's budget.
func (a *account) Reserve(tokens int) error { return a.key.spend(int64(tokens)) }

// Return gives tokens back to the key's budget.
func (a *account) Return(tokens int) {
	if a.key != nil {
		a.key.spent.Add(-int64(tokens))
	}
}

// Count counts tokens.
func (a *account) Count(model string, read, written int) {
	if written > 0 && !a.wrote.Swap(true) {
		a.server.metrics.first.Observe(time.Since(a.began).Seconds())
	}
	a.server.metrics.count(model, read, written)
}
