package role

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/engine/merkle"
	"github.com/tally-network/tally/node/replay"
)

// findState returns a state that is here, or gets it from whoever has it.
func (k *Kit) findState(ctx context.Context, l *job.Lease, j *replay.Job, root canon.Hash) (*graph.State, error) {
	if root == l.Order.Problem.Start {
		return j.Training.Start, nil
	}
	if ref, ok := k.noted(l.Order.ID(), root); ok {
		if b, err := k.Store.GetBytes(ref, j.StateBytes()); err == nil {
			return replay.ReadState(b, root, k.Threads)
		}
	}
	missing := error(&FetchError{"state " + root.Short(), errors.New("nothing in the lease has this root")})
	for _, p := range places(l, root) {
		if missing = ctx.Err(); missing != nil {
			break
		}
		var s *graph.State
		if s, missing = k.fetchState(ctx, l, j, root, p); missing != nil && p.receipt != nil && l.Order.Fragments().Cuts() {
			whole := missing
			if s, missing = k.rebuild(ctx, l, j, p, root); missing != nil {
				missing = errors.Join(whole, missing)
			}
		}
		if missing == nil {
			return s, nil
		}
	}
	return nil, missing
}

// fetchState gets a state from one place in a lease.
func (k *Kit) fetchState(ctx context.Context, l *job.Lease, j *replay.Job, root canon.Hash, p place) (*graph.State, error) {
	f, from := p.merge.Data, append([]string{p.merge.By}, Holders(l)...)
	if p.receipt != nil {
		c, err := k.CheckpointsOf(ctx, l, p.receipt)
		if err != nil {
			return nil, err
		}
		f, from = c.States[p.at-1], HoldersOf(l, p.receipt)
	}
	if size := j.StateBytes(); f.Size != uint64(size) {
		return nil, fmt.Errorf("state %v is said to have %d bytes, the order's have %d", root.Short(), f.Size, size)
	}
	b, err := k.Read(ctx, l, f, from...)
	if err != nil {
		return nil, err
	}
	s, err := replay.ReadState(b, root, k.Threads)
	if err != nil {
		return nil, err
	}
	ref, err := RefOf(f)
	if err != nil {
		return nil, err
	}
	return s, k.note(l.Order.ID(), root, ref)
}

// remerge computes a merge that could not be fetched from the states that went into
// it, which custodians attest to. Of any other state it says why it is missing.
func (k *Kit) remerge(ctx context.Context, l *job.Lease, j *replay.Job, root canon.Hash, missing error) (*graph.State, error) {
	r := slices.IndexFunc(l.Merges[:l.Round], func(m job.Merge) bool { return m.Root == root })
	if r < 0 || ctx.Err() != nil {
		return nil, missing
	}
	var ends []*graph.State
	for _, in := range l.Ends(r) {
		s, err := k.findState(ctx, l, j, in) // never by merging: a lease could lie in a circle
		if err != nil {
			return nil, errors.Join(missing, err)
		}
		ends = append(ends, s)
	}
	s, err := j.MergeStates(ctx, ends)
	if err != nil {
		return nil, err
	}
	// A wrong merge is no state that anybody could keep.
	if got, err := merkle.StateRoot(s, k.Threads); err != nil || got != root {
		return nil, errors.Join(missing, err)
	}
	_, _, err = k.KeepState(l.Order.ID(), s)
	return s, err
}

// place is where a lease has a state: a merge, or a checkpoint of a receipt.
type place struct {
	merge   job.Merge
	receipt *job.Receipt
	at      int
}

// places returns where a lease has the state with the given root.
func places(l *job.Lease, root canon.Hash) (out []place) {
	for _, m := range l.Merges[:l.Round] {
		if m.Root == root {
			out = append(out, place{merge: m})
		}
	}
	receipts := []*job.Receipt{}
	for i := range l.Units {
		receipts = append(receipts, l.Units[i].Receipt)
	}
	for _, f := range l.Forced() {
		receipts = append(receipts, f.Unit.Receipt)
	}
	for _, v := range l.Verdicts() {
		receipts = append(receipts, v.Receipt)
	}
	for _, r := range receipts {
		if r == nil {
			continue
		}
		if at := r.IndexOf(root, l.Order.Problem.Segments()); at > 0 {
			out = append(out, place{receipt: r, at: at})
		}
	}
	return out
}
