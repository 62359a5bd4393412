// Package watch is the role of a challenger: it re-executes every receipt and
// every merge of every lease, oldest first, and disputes what is wrong. Custodians that
// hand nothing over it asks on chain to show what they keep. In the disputes of
// others it takes the seat of an honest side that has fallen silent.
//
// [Run] is all of it; node/runner calls it.
//
// Invariant: it accuses nobody of what it has not computed or looked for itself.
//
// Source: docs/spec/dispute.md.
package watch

import (
	"context"
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
	"github.com/tally-network/tally/node/tasks"
)

type challenger struct {
	env     *role.Env
	checks  *tasks.Set
	looks   *tasks.Set            // at custodians
	missing sync.Map              // since when a custodian has handed nothing over, by look
	done    map[canon.Hash]uint64 // the height of a lease of which nothing was left to look at
	player  *disputer.Player
}

// Run watches until ctx is done.
func Run(ctx context.Context, env *role.Env, player *disputer.Player) error {
	c := &challenger{env: env, checks: env.NewTasks(4), looks: env.NewTasks(4), player: player, done: map[canon.Hash]uint64{}}
	defer c.checks.Wait()
	defer c.looks.Wait()
	return env.EachBlock(ctx, c.block)
}

func (c *challenger) block(ctx context.Context, b client.Block) error {
	live, err := c.env.Leases.Live(ctx, "")
	if err != nil {
		return err
	}
	// A lease whose files cannot be had does not keep the others from being checked.
	done := map[canon.Hash]uint64{}
	for _, l := range live {
		id := l.Order.ID()
		if at, ok := c.done[id]; ok && at == l.Changed || !c.lease(ctx, l.Lease, b.Time) {
			done[id] = l.Changed
		}
	}
	c.done = done
	return c.player.Substitute(ctx)
}

// lease starts what is to be checked of a lease, and reports whether anything is.
func (c *challenger) lease(ctx context.Context, l *job.Lease, now int64) (some bool) {
	// The oldest work first: everything later depends on it.
	if t, name, ok := c.next(l); ok {
		some = true
		c.checks.Start(ctx, "check "+l.Order.ID().String(), func(ctx context.Context) error { return c.check(ctx, l, t, name) })
	}
	if !c.noted(l, costName) {
		some = true
		c.checks.Start(ctx, "cost "+l.Order.ID().String(), func(ctx context.Context) error { return c.cost(ctx, l) })
	}
	some = c.custodians(ctx, l, now) || some
	for _, f := range l.Forced() {
		name := leases.AttemptName(l.Order.ID(), f.Index, f.Unit.Attempt) + "-truth"
		if c.noted(l, name) {
			continue
		}
		some = true
		if l.TruthDisputed(c.env.Account.Address, f) {
			continue
		}
		c.checks.Start(ctx, "truth "+name, func(ctx context.Context) error {
			if wrong, err := c.player.CheckTruth(ctx, l, f, f.Segments()); wrong || err != nil {
				return err // who is wrong is looked at again when the dispute is over
			}
			return c.note(l, name)
		})
	}
	for _, v := range l.Verdicts() {
		t, name := job.VerdictTarget(v.Unit, v.Audit.Auditor), leases.AttemptName(l.Order.ID(), v.Unit, v.Receipt.Attempt)+"-"+v.Audit.Auditor
		if c.noted(l, name) {
			continue
		}
		some = true
		if l.Disputed(c.env.Account.Address, t, v.Receipt.Attempt) {
			continue
		}
		c.checks.Start(ctx, "verdict "+name, func(ctx context.Context) error {
			if _, err := c.player.CheckAttempt(ctx, l, t, v.Receipt.Attempt); err != nil {
				return err
			}
			return c.note(l, name)
		})
	}
	return some
}

// next returns the oldest work of others in a lease that has not been checked here. What
// another disputes is looked at again when that dispute is over, if time is left
// to dispute it then: others may challenge true work, or challenge false work
// badly on purpose.
func (c *challenger) next(l *job.Lease) (t job.Target, name string, ok bool) {
	shards, me := l.Order.Problem.Shards, c.env.Account.Address
	for i := range l.Units {
		if u := &l.Units[i]; u.Status >= job.Counted && u.Provider != me && !c.waits(l, job.UnitTarget(i)) {
			if name := leases.AttemptName(l.Order.ID(), i, u.Attempt); !c.noted(l, name) {
				return job.UnitTarget(i), name, true
			}
		}
		if round := i / shards; i%shards == shards-1 && round < l.Round && l.Order.Problem.Merges() {
			t := job.MergeTarget(round)
			if name := fmt.Sprintf("merge-%d-%d", round, l.Attempt(t)); l.Merges[round].By != me && !c.waits(l, t) && !c.noted(l, name) {
				return t, name, true
			}
		}
	}
	return t, "", false
}

// waits reports whether a dispute about work that stands need not be opened now.
func (c *challenger) waits(l *job.Lease, t job.Target) bool {
	return l.Disputed(c.env.Account.Address, t, l.Attempt(t))
}

// check re-executes one piece of work, and goes on with what is next. A dispute has given
// up the task's slot: what is next then begins as a task of its own.
func (c *challenger) check(ctx context.Context, l *job.Lease, t job.Target, name string) error {
	for {
		wrong, err := c.player.Check(ctx, l, t)
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
		c.env.Emit(events.Event{Kind: events.Replayed, Order: l.Order.ID(), Unit: unit, Text: text})
		if err := c.note(l, name); wrong || err != nil {
			return err
		}
		if l, err = c.env.Leases.Get(ctx, l.Order.ID()); err != nil {
			return err
		}
		var more bool
		if t, name, more = c.next(l); !more || l.Phase == job.Settled {
			return nil
		}
	}
}

// Checked work is noted on disk, so that a restart does not do it again.

func (c *challenger) file(l *job.Lease, name string) string {
	return filepath.Join(c.env.Notes.Of(l.Order.ID(), "checked"), name)
}

func (c *challenger) noted(l *job.Lease, name string) bool {
	_, err := os.Stat(c.file(l, name))
	return err == nil
}

func (c *challenger) note(l *job.Lease, what string) error {
	name := c.file(l, what)
	if err := notes.Write(name, nil); err != nil {
		return fmt.Errorf("note that %s is checked: %w", what, err)
	}
	return nil
}
