package leases

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/tally-network/tally/core/canon"
)

// cache holds the live leases that were read last, in about maxCached bytes.
type cache struct {
	mu     sync.Mutex
	leases map[canon.Hash]cachedLease
}

type cachedLease struct {
	Lease
	size int // bytes that it takes, about
}

// maxCached bounds the bytes of cached leases. The largest are not cached, and are read anew
// each time.
const maxCached = 512 << 20

// A decoded lease takes about twice its encoding, and so much for each unit, which may be
// encoded in ten bytes.
const (
	decoded   = 2
	unitBytes = 400
)

// current returns a lease that last changed at a height, from the cache or the chain.
// f.cache.mu is held.
func (f *Follower) current(ctx context.Context, order canon.Hash, changed uint64) (Lease, error) {
	if c, ok := f.cache.leases[order]; ok && c.Changed == changed {
		return c.Lease, nil
	}
	l, size, err := f.read(ctx, order)
	if err != nil {
		return l, err
	}
	if f.cache.leases == nil {
		f.cache.leases = map[canon.Hash]cachedLease{}
	}
	f.cache.leases[order] = cachedLease{l, size}
	f.cache.evict()
	return l, nil
}

// evict lets go of the largest leases that are more than may be cached.
func (c *cache) evict() {
	total := 0
	for _, x := range c.leases {
		total += x.size
	}
	if total <= maxCached {
		return
	}
	bySize := slices.SortedFunc(maps.Keys(c.leases), func(a, b canon.Hash) int {
		return cmp.Or(cmp.Compare(c.leases[b].size, c.leases[a].size), bytes.Compare(a[:], b[:]))
	})
	for _, id := range bySize {
		if total <= maxCached {
			return
		}
		total -= c.leases[id].size
		delete(c.leases, id)
	}
}

// retain lets go of all leases but those that live.
func (c *cache) retain(lives func(canon.Hash) bool) {
	maps.DeleteFunc(c.leases, func(id canon.Hash, _ cachedLease) bool { return !lives(id) })
}

// unread are the orders whose leases could not be read when last asked for, and why.
type unread struct {
	mu  sync.Mutex
	why map[canon.Hash]string
}

// note remembers whether a lease could be read, and reports whether there is
// trouble that was not known before.
func (u *unread) note(order canon.Hash, err error) (news bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err == nil {
		delete(u.why, order)
		return false
	}
	if u.why == nil {
		u.why = map[canon.Hash]string{}
	}
	news = u.why[order] != err.Error()
	u.why[order] = err.Error()
	return news
}

// has reports whether the lease of an order could not be read.
func (u *unread) has(order canon.Hash) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.why[order] != ""
}

// Unread reports whether the lease of an order lives and could not be read when it was
// last asked for: who knows what it asks of us.
func (f *Follower) Unread(order canon.Hash) bool { return f.unread.has(order) }
