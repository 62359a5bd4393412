package role

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/engine/merkle"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/node/replay"
	"github.com/tally-network/tally/store"
)

// works are the problems in memory, by order.
type works struct {
	mu      sync.Mutex
	loading turns
	held    map[canon.Hash]*replay.Job
}

// leastLoad is how long loading a problem may take at least.
const leastLoad = time.Minute

// Work returns the problem of a lease, ready to be computed. The first call
// fetches and checks its files: a FetchError says that they could not be had, a
// replay.UnfitError that they do not make up the order. Any other is this machine's; so is
// that loading took longer than custodians have for an answer.
func (k *Kit) Work(ctx context.Context, l *job.Lease) (*replay.Job, error) {
	id := l.Order.ID()
	if j := k.works.get(id); j != nil {
		return j, nil
	}
	// Who is slow to hand over one order's files must not hold up the others.
	for _, r := range []string{replay.RoleModel, replay.RoleData, replay.RoleStart} {
		if f, ok := l.Order.Problem.File(r); ok {
			if _, err := k.BringFile(ctx, l, f); err != nil {
				return nil, fmt.Errorf("order %s: %w", id.Short(), err)
			}
		}
	}
	done, err := k.works.loading.take(ctx, l.Order.Consumer)
	if err != nil {
		return nil, err
	}
	defer done()
	if j := k.works.get(id); j != nil {
		return j, nil
	}
	limit := max(time.Duration(l.Params.AnswerTime)*time.Millisecond, leastLoad)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it was not loaded within %v: custodians have no longer for an answer", limit))
	defer cancel()
	j, err := replay.Load(ctx, &l.Order.Problem, func(f job.File) ([]byte, error) {
		ref, err := k.BringFile(ctx, l, f)
		if err != nil {
			return nil, err
		}
		return k.Store.GetBytes(ref, maxBlob)
	}, k.Exec)
	if err != nil {
		return nil, fmt.Errorf("order %s: %w", id.Short(), err)
	}
	k.works.put(id, j)
	return j, nil
}

// CheckUnread brings the files of an order that no step reads, and checks that they are what
// their roles say; its errors are those of Work. Custodians do so: others need none of them.
func (k *Kit) CheckUnread(ctx context.Context, l *job.Lease) error {
	j, err := k.Work(ctx, l)
	if err != nil {
		return err
	}
	for _, r := range []string{replay.RoleHeldOut, replay.RoleTokenizer} {
		f, ok := l.Order.Problem.File(r)
		if !ok {
			continue
		}
		ref, err := k.BringFile(ctx, l, f)
		if err != nil {
			return err
		}
		done, err := k.works.loading.take(ctx, l.Order.Consumer)
		if err != nil {
			return err
		}
		b, err := k.Store.GetBytes(ref, maxBlob)
		if err == nil {
			err = j.CheckUnread(r, b)
		}
		done()
		if err != nil {
			return fmt.Errorf("order %s: %w", l.Order.ID().Short(), err)
		}
	}
	return nil
}

// BringFile brings a file of the order, as Bring does. A provider takes it from custodians,
// and from others who may have it once a quorum of custodians has said that it has: if others
// could not have it too, nobody would attest to what is computed.
func (k *Kit) BringFile(ctx context.Context, l *job.Lease, f job.File) (store.Ref, error) {
	from := whom{from: Holders(l), consumer: true, spare: Others(l)}
	if slices.ContainsFunc(l.Providers, func(p job.Party) bool { return p.Account == k.Account.Address }) {
		from = whom{from: Custodians(l), spare: Others(l)}
	}
	return k.bring(ctx, l, Pin(l.Order.ID()), f, from)
}

// HasWork reports whether Work would answer at once.
func (k *Kit) HasWork(l *job.Lease) bool { return k.works.get(l.Order.ID()) != nil }

func (w *works) get(order canon.Hash) *replay.Job {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held[order]
}

// put holds the work of an order; nil lets go of it.
func (w *works) put(order canon.Hash, work *replay.Job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held == nil {
		w.held = map[canon.Hash]*replay.Job{}
	}
	if w.held[order] = work; work == nil {
		delete(w.held, order)
	}
}

// Checkpoints names the states of a unit's checkpoints after the first, in
// order; a receipt's data file holds it.
type Checkpoints struct{ States []job.File }

// Code walks the fields of c.
func (c *Checkpoints) Code(w *canon.Codec) {
	canon.Seq(w, &c.States, job.MaxSegments, 3, func(w *canon.Codec, f *job.File) { f.Code(w) })
}

// CheckpointsOf brings the list of a unit's checkpoints.
func (k *Kit) CheckpointsOf(ctx context.Context, l *job.Lease, r *job.Receipt) (Checkpoints, error) {
	var c Checkpoints
	if r.Data.Size > job.MaxList {
		return c, fmt.Errorf("checkpoints of unit %d: a list of %d bytes, limit %d", r.Unit, r.Data.Size, job.MaxList)
	}
	ref, err := k.bring(ctx, l, ListPin(l.Order.ID()), r.Data, whom{from: HoldersOf(l, r)})
	if err != nil {
		return c, err
	}
	b, err := k.Store.GetBytes(ref, job.MaxList)
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

// KeepState stores a state for a lease and notes where, so that it is found by
// its root even after the work that it came from is void.
func (k *Kit) KeepState(order canon.Hash, s *graph.State) (canon.Hash, store.Ref, error) {
	root, err := merkle.StateRoot(s, k.Threads)
	if err != nil {
		return root, store.Ref{}, err
	}
	ref, err := k.Store.PutBytes(Pin(order), canon.Encode(s.Encode))
	if err != nil {
		return root, ref, err
	}
	return root, ref, k.note(order, root, ref)
}

// State returns the state with the given root: a state of the lease's start,
// merges or checkpoints, wherever it can be had. One that nobody has is computed
// again: a checkpoint that was here before, or a merge.
func (k *Kit) State(ctx context.Context, l *job.Lease, root canon.Hash) (*graph.State, error) {
	j, err := k.Work(ctx, l)
	if err != nil {
		return nil, err
	}
	s, missing := k.findState(ctx, l, j, root)
	if missing == nil || ctx.Err() != nil {
		return s, missing
	}
	_, known := k.noted(l.Order.ID(), root)
	for _, p := range places(l, root) {
		if p.receipt == nil || !known {
			continue
		}
		s, err := k.derive(ctx, l, p.receipt, root)
		if err == nil || ctx.Err() != nil {
			return s, err
		}
		missing = errors.Join(missing, err)
	}
	return k.remerge(ctx, l, j, root, missing)
}

// HoldState makes sure that a state is here, as State would return it.
func (k *Kit) HoldState(ctx context.Context, l *job.Lease, root canon.Hash) error {
	id := l.Order.ID()
	if ref, ok := k.noted(id, root); ok && k.Store.Has(ref) {
		return k.Store.Pin(Pin(id), ref) // it was checked when it was noted
	}
	_, err := k.State(ctx, l, root)
	return err
}

// Notes is the directory of what a role notes about an order, until Forget.
func (k *Kit) Notes(order canon.Hash, what string) string {
	return filepath.Join(k.Dir, "orders", order.String(), what)
}

func (k *Kit) noteFile(order, root canon.Hash) string {
	return filepath.Join(k.Notes(order, "states"), root.String())
}

func (k *Kit) note(order, root canon.Hash, ref store.Ref) error {
	name := k.noteFile(order, root)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return WriteFile(name, []byte(ref.String()))
}

// maxRef bounds a note of a blob's name in bytes.
const maxRef = 1 << 10

func (k *Kit) noted(order, root canon.Hash) (store.Ref, bool) {
	b, err := bounded.ReadFile(k.noteFile(order, root), maxRef)
	if err != nil {
		return store.Ref{}, false
	}
	ref, err := store.ParseRef(string(b))
	return ref, err == nil
}

// WriteFile replaces a file whole or not at all. Tasks may write one file at the
// same time; the last wins.
func WriteFile(name string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Forget lets go of a lease: its problem in memory, its blobs and notes.
func (k *Kit) Forget(order canon.Hash) error {
	k.works.put(order, nil)
	k.conduct.forget(order)
	k.readers.mu.Lock()
	_, served := k.readers.leases[Pin(order)]
	delete(k.readers.leases, Pin(order))
	delete(k.readers.served, Pin(order))
	delete(k.readers.lists, ListPin(order))
	k.readers.mu.Unlock()
	if served {
		k.Host.SetParties(Pin(order), nil)
	}
	if k.Host != nil { // its consumer is known before anything is served
		k.Host.SetConsumer(Pin(order), nil)
	}
	if err := os.RemoveAll(k.Notes(order, "")); err != nil {
		return err
	}
	if err := errors.Join(k.Store.Unpin(Pin(order)), k.Store.Unpin(ListPin(order))); err != nil {
		return err
	}
	_, err := k.Store.GC()
	return err
}
