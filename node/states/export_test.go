package states

import (
	"context"
	"time"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/node/replay"
	"github.com/tally-network/tally/store"
)

// KeepFor is KeepEnded in ms.
const KeepFor = int64(KeepEnded / time.Millisecond)

// Find finds a state without computing it.
func (h *Holder) Find(ctx context.Context, l *job.Lease, j *replay.Job, root canon.Hash) (*graph.State, error) {
	return h.findState(ctx, l, j, root)
}

// Noted returns where a state was kept.
func (h *Holder) Noted(order, root canon.Hash) (store.Ref, bool) { return h.noted(order, root) }

// NoteFile names the note of it.
func (h *Holder) NoteFile(order, root canon.Hash) string { return h.noteFile(order, root) }
