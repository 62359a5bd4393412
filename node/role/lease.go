package role

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// Leases are read brief: of standing receipts with the last checkpoint alone, of merges
// without inputs. Fill brings the rest of what a task is about. A lease is read again when
// the chain says that it has changed; what was read is shared, so nobody changes it.

// Lease returns a lease as the chain has it, brief.
func (k *Kit) Lease(ctx context.Context, order canon.Hash) (*job.Lease, error) {
	l, _, err := k.readLease(ctx, order)
	return l, err
}

// readLease returns a lease, brief, and the size of its encoding in bytes.
func (k *Kit) readLease(ctx context.Context, order canon.Hash) (*job.Lease, int, error) {
	r, err := workv1.NewQueryClient(k.Chain.Conn).State(ctx, &workv1.QueryStateRequest{Order: order.String(), Brief: true})
	if err != nil {
		return nil, 0, fmt.Errorf("lease of order %s: %w", order.Short(), err)
	}
	l := &job.Lease{}
	if err := canon.Unmarshal(r.Lease, l); err != nil {
		return nil, 0, fmt.Errorf("lease of order %s: %w", order.Short(), err)
	}
	if p := &l.Order.Problem; l.Order.ID() != order || len(l.Units) != p.Units() || len(l.Merges) != p.Rounds {
		return nil, 0, fmt.Errorf("the node answered with another lease than that of order %s", order.Short())
	}
	return l, len(r.Lease), nil
}

// Fill returns l with the checkpoints of the given units' receipts and the inputs of the
// given merges. It fails if they have changed since l was read.
func (k *Kit) Fill(ctx context.Context, l *job.Lease, p job.Part) (*job.Lease, error) {
	q := &workv1.QueryRootsRequest{Order: l.Order.ID().String()}
	for _, i := range p.Units {
		if r := l.Units[i].Receipt; r != nil && r.Brief() {
			q.Units = append(q.Units, uint32(i))
		}
	}
	for _, r := range p.Merges {
		if m := &l.Merges[r]; !m.Root.IsZero() && len(m.Inputs) == 0 {
			q.Rounds = append(q.Rounds, uint32(r))
		}
	}
	if len(q.Units) == 0 && len(q.Rounds) == 0 {
		return l, nil
	}
	r, err := workv1.NewQueryClient(k.Chain.Conn).Roots(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("state roots of order %s: %w", l.Order.ID().Short(), err)
	}
	if len(r.Checkpoints) != len(q.Units) || len(r.Inputs) != len(q.Rounds) {
		return nil, fmt.Errorf("the node answered with %d lists of checkpoints and %d of inputs, want %d and %d", len(r.Checkpoints), len(r.Inputs), len(q.Units), len(q.Rounds))
	}
	filled := *l
	filled.Units, filled.Merges = slices.Clone(l.Units), slices.Clone(l.Merges)
	problem := &l.Order.Problem
	for j, i := range q.Units {
		receipt := *l.Units[i].Receipt
		all, err := rootsOf(r.Checkpoints[j], problem.Segments()+1)
		if err != nil || all[len(all)-1] != receipt.End() {
			return nil, errors.Join(fmt.Errorf("unit %d of order %s has changed", i, l.Order.ID().Short()), err)
		}
		receipt.Checkpoints = all
		filled.Units[i].Receipt = &receipt
	}
	for j, round := range q.Rounds {
		if filled.Merges[round].Inputs, err = rootsOf(r.Inputs[j], problem.Shards); err != nil {
			return nil, fmt.Errorf("merge %d of order %s has changed: %w", round, l.Order.ID().Short(), err)
		}
	}
	return &filled, nil
}

// rootsOf reads a list of n state roots.
func rootsOf(r workv1.Roots, n int) ([]canon.Hash, error) {
	const size = len(canon.Hash{})
	if len(r.Roots) != n*size {
		return nil, fmt.Errorf("%d bytes of state roots, want %d", len(r.Roots), n*size)
	}
	out := make([]canon.Hash, n)
	for i := range out {
		copy(out[i][:], r.Roots[i*size:])
	}
	return out, nil
}

// leasesAtOnce is how many live leases a reply names.
const leasesAtOnce = 1000

// Live returns the leases that are not settled: all, or those in which account
// takes part. One that cannot be read is left out and told of, so it keeps nobody
// from the others; an error means that the chain cannot be asked.
func (k *Kit) Live(ctx context.Context, account string) ([]*job.Lease, error) {
	k.held.mu.Lock() // whoever asks beside us finds what we read
	defer k.held.mu.Unlock()
	var out []*job.Lease
	named := map[canon.Hash]bool{}
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
			named[id] = true
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
	k.held.keep(named)
	return out, nil
}

// held are the live leases that were read last, in at most maxHeld bytes.
type held struct {
	mu     sync.Mutex
	leases map[canon.Hash]heldLease
}

type heldLease struct {
	lease   *job.Lease
	changed uint64 // height
	size    int    // bytes of its encoding
}

// maxHeld bounds the encodings of held leases in bytes; they take a few times as much
// when they are decoded. The largest are not held, and are read anew each time.
const maxHeld = 128 << 20

// current returns a lease that last changed at a height, from what is held or the chain.
func (k *Kit) current(ctx context.Context, order canon.Hash, changed uint64) (*job.Lease, error) {
	if h, ok := k.held.leases[order]; ok && h.changed == changed {
		return h.lease, nil
	}
	l, size, err := k.readLease(ctx, order)
	if err != nil {
		return nil, err
	}
	if k.held.leases == nil {
		k.held.leases = map[canon.Hash]heldLease{}
	}
	// It may have changed once more since the chain was asked: it is read again then.
	k.held.leases[order] = heldLease{l, changed, size}
	k.held.limit()
	return l, nil
}

// limit lets go of the largest leases that are more than may be held.
func (h *held) limit() {
	total := 0
	for _, x := range h.leases {
		total += x.size
	}
	if total <= maxHeld {
		return
	}
	type entry struct {
		order canon.Hash
		size  int
	}
	var all []entry
	for id, x := range h.leases {
		all = append(all, entry{id, x.size})
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(b.size, a.size) })
	for _, e := range all {
		if total <= maxHeld {
			return
		}
		total -= e.size
		delete(h.leases, e.order)
	}
}

// keep lets go of all leases but those that were named.
func (h *held) keep(named map[canon.Hash]bool) {
	for id := range h.leases {
		if !named[id] {
			delete(h.leases, id)
		}
	}
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
