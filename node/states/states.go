// Package states gets, keeps and lets go of the states of leases: starts, checkpoints and
// merges, each named by its root.
//
// Make a [Holder]. [Holder.Get] returns a state from wherever it can be had: the disk, who
// holds it, fragments of it, or by computing it again. [Holder.Put] keeps one that was
// computed here. A [Pruner] lets go, block by block, of what a [Policy] does not keep.
//
// Invariant: a state is only ever returned, and noted, after its root was checked.
//
// Source: docs/adr/0012-recomputation.md; docs/adr/0016-custodians-keep-fragments.md.
package states

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/engine/merkle"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/jobs"
	"github.com/tally-network/tally/node/leases"
	"github.com/tally-network/tally/node/notes"
	"github.com/tally-network/tally/store"
)

// Holder holds the states of one role's leases.
type Holder struct {
	Me       string // the role's account
	Threads  int    // that hash
	Accepted Policy // what stays of accepted units; empty: KeepAll
	Ended    int64  // ms of protocol time for which the blobs of a lease that is settled stay; 0: KeepEnded

	Store  *store.Store
	Leases *leases.Follower
	Blobs  *blobs.Exchange
	Jobs   *jobs.Cache
	Notes  notes.Dir
	Log    *slog.Logger
}

// CheckpointList names the states of a unit's checkpoints after the first, in
// order; a receipt's data file holds it.
type CheckpointList struct{ States []job.File }

// Code walks the fields of c.
func (c *CheckpointList) Code(w *canon.Codec) {
	canon.Seq(w, &c.States, job.MaxSegments, 3, func(w *canon.Codec, f *job.File) { f.Code(w) })
}

// Checkpoints fetches the list of a unit's checkpoints.
func (h *Holder) Checkpoints(ctx context.Context, l *job.Lease, r *job.Receipt) (CheckpointList, error) {
	var c CheckpointList
	if r.Data.Size > job.MaxList {
		return c, fmt.Errorf("checkpoints of unit %d: a list of %d bytes, limit %d", r.Unit, r.Data.Size, job.MaxList)
	}
	ref, err := h.Blobs.FetchList(ctx, l, r)
	if err != nil {
		return c, err
	}
	b, err := h.Store.GetBytes(ref, job.MaxList)
	if err != nil {
		return c, err
	}
	if err := canon.Unmarshal(b, &c); err != nil {
		return c, fmt.Errorf("checkpoints of unit %d: %w", r.Unit, err)
	}
	if n := l.Order.Problem.Segments(); len(c.States) != n {
		return c, fmt.Errorf("unit %d has %d checkpoints and data of %d", r.Unit, n, len(c.States))
	}
	return c, nil
}

// Put stores a state for a lease and notes where, so that it is found by
// its root even after the work that it came from is void.
func (h *Holder) Put(order canon.Hash, s *graph.State) (canon.Hash, store.Ref, error) {
	root, err := merkle.StateRoot(s, h.Threads)
	if err != nil {
		return root, store.Ref{}, err
	}
	ref, err := h.Store.Put(blobs.Pin(order), store.Joined(s.Parts()))
	if err != nil {
		return root, ref, err
	}
	return root, ref, h.note(order, root, ref)
}

// Get returns the state with the given root: a state of the lease's start,
// merges or checkpoints, wherever it can be had. One that nobody has is computed
// again: a checkpoint that was here before, or a merge.
func (h *Holder) Get(ctx context.Context, l *job.Lease, root canon.Hash) (*graph.State, error) {
	j, err := h.Jobs.Get(ctx, l)
	if err != nil {
		return nil, err
	}
	s, missing := h.findState(ctx, l, j, root)
	if missing == nil || ctx.Err() != nil {
		return s, missing
	}
	_, known := h.noted(l.Order.ID(), root)
	for _, p := range places(l, root) {
		if p.receipt == nil || !known {
			continue
		}
		s, err := h.derive(ctx, l, p.receipt, root)
		if err == nil || ctx.Err() != nil {
			return s, err
		}
		missing = errors.Join(missing, err)
	}
	return h.remerge(ctx, l, j, root, missing)
}

// Ensure makes sure that a state is here, as Get would return it.
func (h *Holder) Ensure(ctx context.Context, l *job.Lease, root canon.Hash) error {
	id := l.Order.ID()
	if ref, ok := h.noted(id, root); ok && h.Store.Has(ref) {
		return h.Store.Pin(blobs.Pin(id), ref) // it was checked when it was noted
	}
	_, err := h.Get(ctx, l, root)
	return err
}

func (h *Holder) noteFile(order, root canon.Hash) string {
	return filepath.Join(h.Notes.Of(order, "states"), root.String())
}

func (h *Holder) note(order, root canon.Hash, ref store.Ref) error {
	return notes.Write(h.noteFile(order, root), []byte(ref.String()))
}

// maxRef bounds a note of a blob's name in bytes.
const maxRef = 1 << 10

func (h *Holder) noted(order, root canon.Hash) (store.Ref, bool) {
	b, err := bounded.ReadFile(h.noteFile(order, root), maxRef)
	if err != nil {
		return store.Ref{}, false
	}
	ref, err := store.ParseRef(string(b))
	return ref, err == nil
}
