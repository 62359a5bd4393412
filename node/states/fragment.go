package states

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/erasure"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/engine/merkle"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/replay"
)

// FragmentList names a custodian's fragments of a unit's checkpoints after the first, in order;
// an attestation's data file holds it.
type FragmentList struct {
	Roots []canon.Hash
	Files []job.File
}

// Code walks the fields of a list.
func (list *FragmentList) Code(w *canon.Codec) {
	w.Hashes(&list.Roots, job.MaxSegments)
	canon.Seq(w, &list.Files, job.MaxSegments, 3, func(w *canon.Codec, f *job.File) { f.Code(w) })
}

// PutFragments makes a fragment of each of a unit's checkpoints, stores them for the lease,
// and returns what to attest to.
func (h *Holder) PutFragments(ctx context.Context, l *job.Lease, unit, number int) (*job.Fragment, error) {
	var list FragmentList
	id := l.Order.ID()
	for _, root := range l.Units[unit].Receipt.Checkpoints[1:] {
		s, err := h.Get(ctx, l, root)
		if err != nil {
			return nil, err
		}
		if s, err = l.Order.Fragments().Fragment(s, number); err != nil {
			return nil, err
		}
		root, ref, err := h.Put(id, s)
		if err != nil {
			return nil, err
		}
		list.Roots, list.Files = append(list.Roots, root), append(list.Files, blobs.File("fragment", ref))
	}
	ref, err := h.Store.PutBytes(blobs.Pin(id), canon.Marshal(&list))
	if err != nil {
		return nil, err
	}
	return &job.Fragment{Number: number, Root: canon.Root(list.Roots), Data: blobs.File("fragments", ref)}, nil
}

// Fragments fetches the list of a custodian's fragments of a unit, which its word binds.
func (h *Holder) Fragments(ctx context.Context, l *job.Lease, unit int, a job.Attestation) (list FragmentList, err error) {
	if a.Fragment.Data.Size > job.MaxList {
		return list, fmt.Errorf("fragments of unit %d: a list of %d bytes, limit %d", unit, a.Fragment.Data.Size, job.MaxList)
	}
	b, err := h.Blobs.Read(ctx, l, a.Fragment.Data, a.Custodian)
	if err != nil {
		return list, err
	}
	if err := canon.Unmarshal(b, &list); err != nil {
		return list, fmt.Errorf("fragments of unit %d: %w", unit, err)
	}
	n := l.Order.Problem.Segments()
	if len(list.Roots) != n || len(list.Files) != n || canon.Root(list.Roots) != a.Fragment.Root {
		return list, fmt.Errorf("the fragments of unit %d that %s lists are not those that it attested to", unit, a.Custodian)
	}
	return list, nil
}

// Fragment fetches one of a custodian's fragments: that of checkpoint number at.
func (h *Holder) Fragment(ctx context.Context, l *job.Lease, a job.Attestation, list FragmentList, at int) (*graph.State, error) {
	j, err := h.Jobs.Get(ctx, l)
	if err != nil {
		return nil, err
	}
	f := list.Files[at-1]
	if most := l.Order.Fragments().Bytes(j.Step.Gives()); f.Size > most {
		return nil, fmt.Errorf("a fragment of %d bytes, the limit is %d", f.Size, most)
	}
	b, err := h.Blobs.Read(ctx, l, f, a.Custodian)
	if err != nil {
		return nil, err
	}
	return replay.ReadState(b, list.Roots[at-1], h.Threads)
}

// OwnFragment returns this custodian's fragment of a checkpoint of a unit to which it has
// attested, and the roots of all its fragments of that unit. What is lost it makes anew.
func (h *Holder) OwnFragment(ctx context.Context, l *job.Lease, unit, at int) (*graph.State, []canon.Hash, error) {
	i := slices.IndexFunc(l.Units[unit].Attested, func(a job.Attestation) bool {
		return a.Custodian == h.Me && a.Fragment != nil && !a.Failed
	})
	if i < 0 {
		return nil, nil, fmt.Errorf("no fragment of unit %d is kept here", unit)
	}
	a := l.Units[unit].Attested[i]
	list, err := h.Fragments(ctx, l, unit, a)
	var s *graph.State
	if err == nil {
		s, err = h.Fragment(ctx, l, a, list, at)
	}
	if err == nil || ctx.Err() != nil {
		return s, list.Roots, err
	}
	if _, again := h.PutFragments(ctx, l, unit, a.Fragment.Number); again != nil {
		return nil, nil, errors.Join(err, again)
	}
	if list, err = h.Fragments(ctx, l, unit, a); err != nil {
		return nil, nil, err
	}
	s, err = h.Fragment(ctx, l, a, list, at)
	return s, list.Roots, err
}

// rebuild makes a checkpoint of a receipt from the fragments of its custodians, of whom some
// may be gone, and some may hand over what is wrong.
func (h *Holder) rebuild(ctx context.Context, l *job.Lease, j *replay.Job, at place, root canon.Hash) (*graph.State, error) {
	r := at.receipt
	u := &l.Units[r.Unit]
	if u.Receipt == nil || u.Attempt != r.Attempt {
		return nil, &blobs.FetchError{Role: "checkpoint", Err: fmt.Errorf("nobody keeps fragments of attempt %d of unit %d", r.Attempt, r.Unit)}
	}
	code, slots := l.Order.Fragments(), j.Step.Gives()
	var held []erasure.Held
	var missing []error
	for _, a := range u.Attested {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if a.Fragment == nil { // it has not attested yet
			continue
		}
		list, err := h.Fragments(ctx, l, r.Unit, a)
		var s *graph.State
		if err == nil {
			s, err = h.Fragment(ctx, l, a, list, at.at)
		}
		if err == nil {
			err = s.Fits(code.Slots(slots))
		}
		if err != nil {
			missing = append(missing, err)
			continue
		}
		held = append(held, erasure.Held{Number: a.Fragment.Number, Fragment: s})
		s, err = h.choose(code, slots, root, held[:len(held)-1], held[len(held)-1:])
		if s == nil && err == nil {
			continue
		}
		if err == nil {
			_, _, err = h.Put(l.Order.ID(), s)
		}
		return s, err
	}
	missing = append(missing, fmt.Errorf("%d custodians hand over their fragments, %d are needed", len(held), code.Needed))
	return nil, &blobs.FetchError{Role: "checkpoint " + root.Short(), Err: errors.Join(missing...)}
}

// choose returns the state with the given root that the chosen fragments make up with
// some of the others, nil if none do: one fragment that is wrong must not spoil the rest.
func (h *Holder) choose(code erasure.Code, slots []graph.Slot, root canon.Hash, others, chosen []erasure.Held) (*graph.State, error) {
	if len(chosen) == code.Needed {
		s, err := code.Rebuild(slots, chosen)
		if err != nil {
			return nil, nil // a number twice
		}
		if got, err := merkle.StateRoot(s, h.Threads); err != nil || got != root {
			return nil, err
		}
		return s, nil
	}
	for i, o := range others {
		if s, err := h.choose(code, slots, root, others[:i], append(slices.Clone(chosen), o)); s != nil || err != nil {
			return s, err
		}
	}
	return nil, nil
}
