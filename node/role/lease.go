package role

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// Lease is a lease as Live has read it, brief.
type Lease struct {
	*job.Lease
	Changed uint64 // height of the block that changed it last
}

// Lease returns a lease as the chain has it, brief.
func (k *Kit) Lease(ctx context.Context, order canon.Hash) (*job.Lease, error) {
	l, _, err := k.readLease(ctx, order)
	return l.Lease, err
}

// readLease returns a lease, and the bytes that it takes, about.
func (k *Kit) readLease(ctx context.Context, order canon.Hash) (Lease, int, error) {
	r, err := workv1.NewQueryClient(k.Chain.Conn).State(ctx, &workv1.QueryStateRequest{Order: order.String(), Brief: true})
	if err != nil {
		return Lease{}, 0, fmt.Errorf("lease of order %s: %w", order.Short(), err)
	}
	l := &job.Lease{}
	if err := canon.Unmarshal(r.Lease, l); err != nil {
		return Lease{}, 0, fmt.Errorf("lease of order %s: %w", order.Short(), err)
	}
	if p := &l.Order.Problem; l.Order.ID() != order || len(l.Units) != p.Units() || len(l.Merges) != p.Rounds {
		return Lease{}, 0, fmt.Errorf("the node answered with another lease than that of order %s", order.Short())
	}
	return Lease{l, r.Changed}, decoded*len(r.Lease) + unitBytes*len(l.Units), nil
}

// Fill returns l with the checkpoints of the given units' receipts and the inputs of the
// given merges. It fails if a unit was done again since l was read.
func (k *Kit) Fill(ctx context.Context, l *job.Lease, p job.Part) (*job.Lease, error) {
	if len(p.Units) == 0 && len(p.Merges) == 0 {
		return l, nil
	}
	q := &workv1.QueryRootsRequest{Order: l.Order.ID().String()}
	for _, i := range p.Units {
		if r := l.Units[i].Receipt; r != nil && r.OnlyEnd() {
			q.Units = append(q.Units, uint32(i))
		}
	}
	filled := *l
	filled.Units, filled.Merges = slices.Clone(l.Units), slices.Clone(l.Merges)
	for _, r := range p.Merges {
		if m := &l.Merges[r]; !m.Root.IsZero() && len(m.Inputs) == 0 {
			filled.Merges[r].Inputs = l.Ends(r)
		}
	}
	if len(q.Units) == 0 {
		return &filled, nil
	}
	r, err := workv1.NewQueryClient(k.Chain.Conn).Roots(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("checkpoints of order %s: %w", l.Order.ID().Short(), err)
	}
	if len(r.Checkpoints) != len(q.Units) {
		return nil, fmt.Errorf("the node answered with the checkpoints of %d units, %d were asked for", len(r.Checkpoints), len(q.Units))
	}
	for j, i := range q.Units {
		receipt := *l.Units[i].Receipt
		if receipt.Checkpoints, err = decodeRoots(&r.Checkpoints[j], &receipt, l.Order.Problem.Segments()+1); err != nil {
			return nil, fmt.Errorf("unit %d of order %s: %w", i, l.Order.ID().Short(), err)
		}
		filled.Units[i].Receipt = &receipt
	}
	return &filled, nil
}

// decodeRoots returns the n checkpoints of a receipt of which the last is known.
func decodeRoots(r *workv1.Roots, of *job.Receipt, n int) ([]canon.Hash, error) {
	const size = len(canon.Hash{})
	if len(r.Roots) == 0 || int(r.Attempt) != of.Attempt {
		return nil, fmt.Errorf("attempt %d was done again", of.Attempt)
	}
	if len(r.Roots) != n*size {
		return nil, fmt.Errorf("the node answered with %d bytes of checkpoints, want %d", len(r.Roots), n*size)
	}
	out := make([]canon.Hash, n)
	for i := range out {
		copy(out[i][:], r.Roots[i*size:])
	}
	if out[n-1] != of.End() {
		return nil, errors.New("the node answered with the checkpoints of another receipt")
	}
	return out, nil
}

// AttemptName names an attempt of a unit, in tasks and notes.
func AttemptName(order canon.Hash, unit, attempt int) string {
	return fmt.Sprintf("%s-%d-%d", order.String()[:16], unit, attempt)
}

// leasesAtOnce is how many live leases a reply names.
const leasesAtOnce = 1000

// Live returns the leases that are not settled: all, or those in which account
// takes part. One that cannot be read is left out and told of, so it keeps nobody
// from the others; an error means that the chain cannot be asked.
func (k *Kit) Live(ctx context.Context, account string) ([]Lease, error) {
	k.cache.mu.Lock() // whoever asks beside us finds what we read
	defer k.cache.mu.Unlock()
	var out []Lease
	live := map[canon.Hash]bool{}
	q := &workv1.QueryLiveRequest{Participant: account, Pagination: &query.PageRequest{Limit: leasesAtOnce}}
	for {
		r, err := workv1.NewQueryClient(k.Chain.Conn).Live(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("live leases: %w", err)
		}
		for _, x := range r.Leases {
			id, err := canon.ParseHash(x.Order)
			if err != nil {
				return nil, err
			}
			live[id] = true
			l, err := k.current(ctx, id, x.Changed)
			if unanswered(err) {
				return nil, err
			}
			if k.unread.note(id, err) {
				k.Log.Warn("left aside", "order", id, "error", err)
				k.Emit(Event{Kind: Trouble, Order: id, Unit: -1, Text: err.Error()})
			}
			if err == nil {
				out = append(out, l)
			}
		}
		if r.Pagination == nil || len(r.Pagination.NextKey) == 0 {
			break
		}
		q.Pagination = &query.PageRequest{Key: r.Pagination.NextKey, Limit: leasesAtOnce}
	}
	k.cache.retain(live)
	return out, nil
}

// leaseCache holds the live leases that were read last, in about maxCached bytes.
type leaseCache struct {
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
// k.cache.mu is held.
func (k *Kit) current(ctx context.Context, order canon.Hash, changed uint64) (Lease, error) {
	if c, ok := k.cache.leases[order]; ok && c.Changed == changed {
		return c.Lease, nil
	}
	l, size, err := k.readLease(ctx, order)
	if err != nil {
		return l, err
	}
	if k.cache.leases == nil {
		k.cache.leases = map[canon.Hash]cachedLease{}
	}
	k.cache.leases[order] = cachedLease{l, size}
	k.cache.evict()
	return l, nil
}

// evict lets go of the largest leases that are more than may be cached.
func (c *leaseCache) evict() {
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
func (c *leaseCache) retain(live map[canon.Hash]bool) {
	maps.DeleteFunc(c.leases, func(id canon.Hash, _ cachedLease) bool { return !live[id] })
}

// unanswered reports whether an error says that a node did not answer, and nothing
// about what was asked for.
func unanswered(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return true
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
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
