package states

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/engine/merkle"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/replay"
)

// findState returns a state that is here, or gets it from whoever has it.
func (h *Holder) findState(ctx context.Context, l *job.Lease, j *replay.Job, root canon.Hash) (*graph.State, error) {
	if root == l.Order.Problem.Start {
		return j.Start, nil
	}
	if ref, ok := h.noted(l.Order.ID(), root); ok {
		if b, err := h.Store.GetBytes(ref, j.StateBytes()); err == nil {
			return replay.ReadState(b, root, h.Threads)
		}
	}
	missing := error(&blobs.FetchError{Role: "state " + root.Short(), Err: errors.New("nothing in the lease has this root")})
	for _, p := range places(l, root) {
		if missing = ctx.Err(); missing != nil {
			break
		}
		var s *graph.State
		if s, missing = h.fetchState(ctx, l, j, root, p); missing != nil && p.receipt != nil && l.Order.Fragments().Cuts() {
			whole := missing
			if s, missing = h.rebuild(ctx, l, j, p, root); missing != nil {
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
func (h *Holder) fetchState(ctx context.Context, l *job.Lease, j *replay.Job, root canon.Hash, p place) (*graph.State, error) {
	f, from := p.merge.Data, append([]string{p.merge.By}, blobs.Holders(l)...)
	if p.receipt != nil {
		c, err := h.Checkpoints(ctx, l, p.receipt)
		if err != nil {
			return nil, err
		}
		f, from = c.States[p.at-1], blobs.HoldersOf(l, p.receipt)
	}
	if size := j.StateBytes(); f.Size != uint64(size) {
		return nil, fmt.Errorf("state %v is said to have %d bytes, the order's have %d", root.Short(), f.Size, size)
	}
	b, err := h.Blobs.Read(ctx, l, f, from...)
	if err != nil {
		return nil, err
	}
	s, err := replay.ReadState(b, root, h.Threads)
	if err != nil {
		return nil, err
	}
	ref, err := blobs.RefOf(f)
	if err != nil {
		return nil, err
	}
	return s, h.note(l.Order.ID(), root, ref)
}

// remerge computes a merge that could not be fetched from the states that went into
// it, which custodians attest to. Of any other state it says why it is missing.
func (h *Holder) remerge(ctx context.Context, l *job.Lease, j *replay.Job, root canon.Hash, missing error) (*graph.State, error) {
	r := slices.IndexFunc(l.Merges[:l.Round], func(m job.Merge) bool { return m.Root == root })
	if r < 0 || ctx.Err() != nil || !l.Order.Problem.Merges() {
		return nil, missing
	}
	var ends []*graph.State
	for _, in := range l.Ends(r) {
		s, err := h.findState(ctx, l, j, in) // never by merging: a lease could lie in a circle
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
	if got, err := merkle.StateRoot(s, h.Threads); err != nil || got != root {
		return nil, errors.Join(missing, err)
	}
	_, _, err = h.Put(l.Order.ID(), s)
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
		if m.Root == root && l.Order.Problem.Merges() {
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

// derive computes a checkpoint of a unit again, from the last one before it that
// is here or the start of the unit's round.
func (h *Holder) derive(ctx context.Context, l *job.Lease, r *job.Receipt, root canon.Hash) (*graph.State, error) {
	j, err := h.Jobs.Get(ctx, l)
	if err != nil {
		return nil, err
	}
	if r.OnlyEnd() {
		if l, err = h.Leases.Fill(ctx, l, l.AboutUnit(r.Unit)); err != nil {
			return nil, err
		}
		r = l.Units[r.Unit].Receipt
	}
	p, id := &l.Order.Problem, l.Order.ID()
	to := r.IndexOf(root, p.Segments())
	if to <= 0 {
		return nil, fmt.Errorf("state %v is no checkpoint of unit %d that follows from another", root.Short(), r.Unit)
	}
	from := to - 1
	for ; from > 0 && !p.Independent(); from-- {
		if ref, ok := h.noted(id, r.Checkpoints[from]); ok && h.Store.Has(ref) {
			break
		}
	}
	// Never by deriving: receipts could lie in a circle.
	before := p.Before(r, from)
	s, err := h.findState(ctx, l, j, before)
	if err != nil {
		s, err = h.remerge(ctx, l, j, before, err)
	}
	if err != nil {
		return nil, err
	}
	s, err = j.UnitOf(p, r.Unit).Play(ctx, s, from*p.Interval, min(to*p.Interval, p.Steps), nil)
	if err != nil {
		return nil, err
	}
	if got, err := merkle.StateRoot(s, h.Threads); err != nil || got != root {
		return nil, errors.Join(fmt.Errorf("checkpoint %d of unit %d does not follow from checkpoint %d", to, r.Unit, from), err)
	}
	_, _, err = h.Put(id, s)
	return s, err
}
