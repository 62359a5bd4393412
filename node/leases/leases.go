// Package leases follows the leases of a chain: it asks what has changed since it asked last, reads
// that again, and keeps what was read. So what it costs does not grow with the leases of others.
//
// Make a [Follower] and call [Follower.Live] on every block. Leases are read brief: of
// standing receipts with the last checkpoint alone, of merges without inputs.
// [Follower.Fill] adds those that a task needs.
//
// Invariants: what was read is shared, and nobody changes it. A lease that cannot be read
// keeps nobody from the others. Cached leases take a bounded number of bytes.
//
// Source: docs/adr/0026-leases-read-brief.md, 0039-pruning-and-changes.md.
package leases

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/events"
)

// Follower reads leases for one role.
type Follower struct {
	Chain    *client.Client
	Recorder *events.Recorder // is told of leases that cannot be read

	unread unread
	cache  cache
	views  map[string]*view // by account; cache.mu is held
}

// Lease is a lease as Live has read it, brief.
type Lease struct {
	*job.Lease
	Changed uint64 // height of the block that changed it last
}

// Get returns a lease as the chain has it now, brief.
func (f *Follower) Get(ctx context.Context, order canon.Hash) (*job.Lease, error) {
	l, _, err := f.read(ctx, order)
	return l.Lease, err
}

// read returns a lease, and the bytes that it takes, about.
func (f *Follower) read(ctx context.Context, order canon.Hash) (Lease, int, error) {
	r, err := workv1.NewQueryClient(f.Chain.Conn).State(ctx, &workv1.QueryStateRequest{Order: order.String(), Brief: true})
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
func (f *Follower) Fill(ctx context.Context, l *job.Lease, p job.Part) (*job.Lease, error) {
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
	r, err := workv1.NewQueryClient(f.Chain.Conn).Roots(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("checkpoints of order %s: %w", l.Order.ID().Short(), err)
	}
	if len(r.Checkpoints) != len(q.Units) {
		return nil, fmt.Errorf("the node answered with the checkpoints of %d units, %d were asked for", len(r.Checkpoints), len(q.Units))
	}
	for j, i := range q.Units {
		receipt := *l.Units[i].Receipt
		if receipt.Checkpoints, err = decodeRoots(&r.Checkpoints[j], &receipt, &l.Order.Problem); err != nil {
			return nil, fmt.Errorf("unit %d of order %s: %w", i, l.Order.ID().Short(), err)
		}
		filled.Units[i].Receipt = &receipt
	}
	return &filled, nil
}

// decodeRoots returns the checkpoints of a receipt of which the end is known.
func decodeRoots(r *workv1.Roots, of *job.Receipt, p *job.Problem) ([]canon.Hash, error) {
	const size = len(canon.Hash{})
	n := p.Segments() + 1
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
	if p.End(&job.Receipt{Start: of.Start, Checkpoints: out}) != p.End(of) {
		return nil, errors.New("the node answered with the checkpoints of another receipt")
	}
	return out, nil
}

// AttemptName names an attempt of a unit, in tasks and notes.
func AttemptName(order canon.Hash, unit, attempt int) string {
	return fmt.Sprintf("%s-%d-%d", order.String()[:16], unit, attempt)
}

// Live returns the leases that are not settled, by their orders' ids: all, or those in which account
// takes part. One that cannot be read is left out and told of, so it keeps nobody
// from the others; an error means that the chain cannot be asked.
func (f *Follower) Live(ctx context.Context, account string) ([]Lease, error) {
	f.cache.mu.Lock() // whoever asks beside us finds what we read
	defer f.cache.mu.Unlock()
	live, err := f.follow(ctx, account)
	if err != nil {
		return nil, err
	}
	var out []Lease
	for _, id := range slices.SortedFunc(maps.Keys(live), func(a, b canon.Hash) int { return bytes.Compare(a[:], b[:]) }) {
		l, err := f.current(ctx, id, live[id])
		if unanswered(err) {
			return nil, err
		}
		if f.unread.note(id, err) {
			f.Recorder.Log.Warn("left aside", "order", id, "error", err)
			f.Recorder.Emit(events.Event{Kind: events.Trouble, Order: id, Unit: -1, Text: err.Error()})
		}
		if err == nil {
			out = append(out, l)
		}
	}
	f.cache.retain(f.lives)
	return out, nil
}

// lives reports whether a lease lives that some role of this process asks for.
func (f *Follower) lives(id canon.Hash) bool {
	for _, v := range f.views { // order: any
		if _, ok := v.live[id]; ok {
			return true
		}
	}
	return false
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
