// Package watch is the role of a challenger: it re-executes every receipt and
// every merge of every lease, oldest first, and disputes what is wrong. Custodians that
// hand nothing over it asks on chain to show what they keep. In the disputes of
// others it takes the seat of an honest side that has fallen silent.
package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/disputer"
	"github.com/tally-network/tally/node/events"
	"github.com/tally-network/tally/node/leases"
	"github.com/tally-network/tally/node/notes"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/states"
	"github.com/tally-network/tally/node/tasks"
)

type challenger struct {
	env     *role.Env
	checks  *tasks.Set
	looks   *tasks.Set            // at custodians
	missing sync.Map              // since when a custodian has handed nothing over, by look
	done    map[canon.Hash]uint64 // the height of a lease of which nothing was left to look at
	player  *disputer.Player
	pruner  *states.Pruner
}

// Run watches until ctx is done.
func Run(ctx context.Context, env *role.Env) error {
	w := &challenger{env: env, checks: env.NewTasks(4), looks: env.NewTasks(4), player: disputer.New(ctx, env), pruner: env.NewPruner(), done: map[canon.Hash]uint64{}}
	defer w.checks.Wait()
	defer w.looks.Wait()
	defer w.player.Wait()
	return env.EachBlock(ctx, w.block)
}

func (w *challenger) block(ctx context.Context, b client.Block) error {
	live, err := w.env.Leases.Live(ctx, "")
	if err != nil {
		return err
	}
	// A lease whose files cannot be had does not keep the others from being checked.
	done := map[canon.Hash]uint64{}
	for _, l := range live {
		id := l.Order.ID()
		if at, ok := w.done[id]; ok && at == l.Changed || !w.lease(ctx, l.Lease, b.Time) {
			done[id] = l.Changed
		}
	}
	w.done = done
	return errors.Join(w.pruner.Block(ctx, b.Time, live), w.player.Block(ctx), w.player.Relieve(ctx))
}

// lease starts what is to be checked of a lease, and reports whether anything is.
func (w *challenger) lease(ctx context.Context, l *job.Lease, now int64) (some bool) {
	// The oldest work first: everything later depends on it.
	if t, name, ok := w.next(l); ok {
		some = true
		w.checks.Start(ctx, "check "+l.Order.ID().String(), func(ctx context.Context) error { return w.check(ctx, l, t, name) })
	}
	some = w.custodians(ctx, l, now) || some
	for _, f := range l.Forced() {
		name := leases.AttemptName(l.Order.ID(), f.Index, f.Unit.Attempt) + "-truth"
		if w.noted(l, name) {
			continue
		}
		some = true
		if l.TruthDisputed(w.env.Account.Address, f) {
			continue
		}
		w.checks.Start(ctx, "truth "+name, func(ctx context.Context) error {
			if wrong, err := w.player.CheckTruth(ctx, l, f, f.Segments()); wrong || err != nil {
				return err // who is wrong is looked at again when the dispute is over
			}
			return w.note(l, name)
		})
	}
	for _, v := range l.Verdicts() {
		t, name := job.VerdictTarget(v.Unit, v.Audit.Auditor), leases.AttemptName(l.Order.ID(), v.Unit, v.Receipt.Attempt)+"-"+v.Audit.Auditor
		if w.noted(l, name) {
			continue
		}
		some = true
		if l.Disputed(w.env.Account.Address, t, v.Receipt.Attempt) {
			continue
		}
		w.checks.Start(ctx, "verdict "+name, func(ctx context.Context) error {
			if _, err := w.player.CheckAttempt(ctx, l, t, v.Receipt.Attempt); err != nil {
				return err
			}
			return w.note(l, name)
		})
	}
	return some
}

// next returns the oldest work of a lease that has not been checked here. What
// another disputes is looked at again when that dispute is over, if time is left
// to dispute it then: others may challenge true work, or challenge false work
// badly on purpose.
func (w *challenger) next(l *job.Lease) (t job.Target, name string, ok bool) {
	shards := l.Order.Problem.Shards
	for i := range l.Units {
		if u := &l.Units[i]; u.Status >= job.Counted && !w.waits(l, job.UnitTarget(i)) {
			if name := leases.AttemptName(l.Order.ID(), i, u.Attempt); !w.noted(l, name) {
				return job.UnitTarget(i), name, true
			}
		}
		if round := i / shards; i%shards == shards-1 && round < l.Round {
			t := job.MergeTarget(round)
			if name := fmt.Sprintf("merge-%d-%d", round, l.Attempt(t)); !w.waits(l, t) && !w.noted(l, name) {
				return t, name, true
			}
		}
	}
	return t, "", false
}

// waits reports whether a dispute about work that stands need not be opened now.
func (w *challenger) waits(l *job.Lease, t job.Target) bool {
	return l.Disputed(w.env.Account.Address, t, l.Attempt(t))
}

// check re-executes one piece of work, and goes on with what is next. A dispute has given
// up the task's slot: what is next then begins as a task of its own.
func (w *challenger) check(ctx context.Context, l *job.Lease, t job.Target, name string) error {
	for {
		wrong, err := w.player.Check(ctx, l, t)
		if err != nil {
			return err
		}
		text := "holds"
		if wrong {
			text = "is wrong"
		}
		unit := t.Index()
		if t.Kind() == job.AboutMerge {
			unit, text = -1, fmt.Sprintf("merge of round %d %s", unit, text)
		}
		w.env.Emit(events.Event{Kind: events.Replayed, Order: l.Order.ID(), Unit: unit, Text: text})
		if err := w.note(l, name); wrong || err != nil {
			return err
		}
		if l, err = w.env.Leases.Get(ctx, l.Order.ID()); err != nil {
			return err
		}
		var more bool
		if t, name, more = w.next(l); !more || l.Phase == job.Settled {
			return nil
		}
	}
}

// Checked work is noted on disk, so that a restart does not do it again.

func (w *challenger) file(l *job.Lease, name string) string {
	return filepath.Join(w.env.Notes.Of(l.Order.ID(), "checked"), name)
}

func (w *challenger) noted(l *job.Lease, name string) bool {
	_, err := os.Stat(w.file(l, name))
	return err == nil
}

func (w *challenger) note(l *job.Lease, what string) error {
	name := w.file(l, what)
	if err := notes.Write(name, nil); err != nil {
		return fmt.Errorf("note that %s is checked: %w", what, err)
	}
	return nil
}
