// Package jobs loads the jobs of orders, one at a time, and holds them in memory.
//
// Make a [Cache] and call [Cache.Get]: the first call for an order fetches and checks its
// files, which may take minutes; later ones answer at once.
//
// Invariants: a job that is held was checked against the roots of its order. Loading takes
// turns that are fair by consumer: however many orders one has, another's waits for one of
// them. No order loads for longer than custodians have for an answer, or a minute.
package jobs

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/replay"
	"github.com/tally-network/tally/store"
)

// Cache holds the jobs of one role's orders in memory.
type Cache struct {
	Exec  engine.Executor
	Blobs *blobs.Exchange

	mu      sync.Mutex
	loading turns
	held    map[canon.Hash]*replay.Job
	scratch map[canon.Hash]int64      // bytes of the records that are held in parts
	latest  map[canon.Hash]*job.Lease // of those that are held, as somebody asked last
	more    chan struct{}             // closed once another job is held; nil if nobody waits for that
}

// leastLoad is how long loading a job may take at least.
const leastLoad = time.Minute

// Get returns the job of a lease, ready to be computed. The first call
// fetches and checks its files: a blobs.FetchError says that they could not be had, a
// replay.UnfitError that they do not make up the order. Any other is this machine's; so is
// that loading took longer than custodians have for an answer.
func (c *Cache) Get(ctx context.Context, l *job.Lease) (*replay.Job, error) {
	id := l.Order.ID()
	c.see(l)
	if j := c.get(id); j != nil {
		return j, nil
	}
	data := replay.RoleData
	if _, ok := l.Order.Problem.File(replay.RoleCrown); ok {
		data = replay.RoleCrown // of the records a unit brings those of its shard
	}
	// Who is slow to hand over one order's files must not hold up the others.
	for _, r := range []string{replay.RoleModel, data, replay.RoleParent, replay.RoleStart} {
		if f, ok := l.Order.Problem.File(r); ok {
			if _, err := c.Blobs.FetchFile(ctx, l, f); err != nil {
				return nil, fmt.Errorf("order %s: %w", id.Short(), err)
			}
		}
	}
	done, err := c.loading.take(ctx, l.Order.Consumer)
	if err != nil {
		return nil, err
	}
	defer done()
	if j := c.get(id); j != nil {
		return j, nil
	}
	limit := max(time.Duration(l.Params.AnswerTime)*time.Millisecond, leastLoad)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it was not loaded within %v: custodians have no longer for an answer", limit))
	defer cancel()
	j, err := replay.Load(ctx, &l.Order.Problem, replay.Files{
		Read: func(f job.File) ([]byte, error) {
			ref, err := c.Blobs.FetchFile(ctx, l, f)
			if err != nil {
				return nil, err
			}
			return c.Blobs.Store.GetBytes(ref, blobs.MaxWhole)
		},
		Part: func(ctx context.Context, f job.File, at, n int64) (io.Reader, error) {
			part := store.Part{At: at, N: n}
			ref, err := c.Blobs.FetchPart(ctx, c.lease(l), f, part)
			if err != nil {
				return nil, err
			}
			return c.Blobs.Store.Get(ref, part)
		},
		Folder: c.Blobs.Store.Scratch(),
		Room:   func(n int64) error { return c.room(id, n) },
	}, c.Exec)
	if err != nil {
		return nil, fmt.Errorf("order %s: %w", id.Short(), err)
	}
	c.put(id, j)
	return j, nil
}

// room counts the n bytes of an order's records that lie beside the store, in its quota.
func (c *Cache) room(order canon.Hash, n int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	total, u := n, c.Blobs.Store.Usage()
	for id, b := range c.scratch {
		if id != order {
			total += b
		}
	}
	if total > u.Quota-u.Bytes {
		return fmt.Errorf("%w: %d bytes of records beside %d of blobs, in a quota of %d", store.ErrQuota, total, u.Bytes, u.Quota)
	}
	if c.scratch == nil {
		c.scratch = map[canon.Hash]int64{}
	}
	c.scratch[order] = n
	return nil
}

// see keeps a lease as it is now: who has its files changes.
func (c *Cache) see(l *job.Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id := l.Order.ID(); c.held[id] != nil {
		c.latest[id] = l
	}
}

// lease returns a lease as it was seen last.
func (c *Cache) lease(l *job.Lease) *job.Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	if latest := c.latest[l.Order.ID()]; latest != nil {
		return latest
	}
	return l
}

// Await waits until the job of a lease is held. Who loads it is another: what is fetched for a while
// alone, and given up then, has to be fetched again.
func (c *Cache) Await(ctx context.Context, l *job.Lease) error {
	for {
		held, more := c.watch(l.Order.ID())
		if held {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return fmt.Errorf("order %s: its files are not loaded yet: %w", l.Order.ID().Short(), ctx.Err())
		}
	}
}

// CheckUnread fetches the files of an order of which this machine's steps have read nothing, or a part, and checks that
// they are what their roles say; its errors are those of Get. Custodians do so: others need none of them.
func (c *Cache) CheckUnread(ctx context.Context, l *job.Lease) error {
	j, err := c.Get(ctx, l)
	if err != nil {
		return err
	}
	done, err := c.loading.take(ctx, l.Order.Consumer)
	if err != nil {
		return err
	}
	err = j.CheckRecords(ctx)
	if done(); err != nil {
		return fmt.Errorf("order %s: %w", l.Order.ID().Short(), err)
	}
	for _, r := range []string{replay.RoleHeldOut, replay.RoleTokenizer, replay.RoleSchema} {
		f, ok := l.Order.Problem.File(r)
		if !ok {
			continue
		}
		ref, err := c.Blobs.FetchFile(ctx, l, f)
		if err != nil {
			return err
		}
		done, err := c.loading.take(ctx, l.Order.Consumer)
		if err != nil {
			return err
		}
		file, err := c.Blobs.Store.Get(ref)
		if err == nil {
			err = j.CheckUnread(r, file, ref.Size)
		}
		done()
		if err != nil {
			return fmt.Errorf("order %s: %w", l.Order.ID().Short(), err)
		}
	}
	return nil
}

// Hold brings here what a unit of an order reads; its errors are those of Get, and a FetchError.
func (c *Cache) Hold(ctx context.Context, l *job.Lease, unit int) error {
	j, err := c.Get(ctx, l)
	if err != nil {
		return err
	}
	return j.UnitOf(&l.Order.Problem, unit).Hold(ctx)
}

// Holds reports whether Hold has done so.
func (c *Cache) Holds(l *job.Lease, unit int) bool {
	j := c.get(l.Order.ID())
	return j != nil && j.UnitOf(&l.Order.Problem, unit).Held()
}

// Has reports whether Get would answer at once.
func (c *Cache) Has(l *job.Lease) bool { return c.get(l.Order.ID()) != nil }

func (c *Cache) get(order canon.Hash) *replay.Job {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[order]
}

// put holds the job of an order; nil lets go of it.
func (c *Cache) put(order canon.Hash, j *replay.Job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		c.held, c.latest = map[canon.Hash]*replay.Job{}, map[canon.Hash]*job.Lease{}
	}
	if c.held[order] = j; j == nil {
		delete(c.held, order)
		delete(c.latest, order)
		delete(c.scratch, order)
		return
	}
	if c.more != nil {
		close(c.more)
		c.more = nil
	}
}

// watch reports whether an order's job is held, and returns what is closed once another is.
func (c *Cache) watch(order canon.Hash) (held bool, more <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.more == nil {
		c.more = make(chan struct{})
	}
	return c.held[order] != nil, c.more
}

// Forget lets go of the job of an order.
func (c *Cache) Forget(order canon.Hash) { c.put(order, nil) }
