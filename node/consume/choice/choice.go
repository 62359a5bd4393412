// Package choice scores the rounds of training on held-out records, says which of them is kept, and ends an order of
// which no more are wanted.
//
// Make a [Choice] with [New]. [Choice.See] scores the rounds that have been merged since; then [Choice.Rate] says which is
// the best so far. A [Watcher] does so on each block while a home's orders are served.
//
// Invariant: whoever has the order and the states of its rounds chooses the same. The chain knows only that
// the consumer wants no more: what it has ordered is its own to judge.
//
// Source: docs/adr/0075-rounds-that-are-kept.md.
package choice

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/scratch"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/replay"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/tasks"
)

// Choice is what is known of the rounds of one order.
type Choice struct {
	env    *role.Env
	best   train.Best
	scorer *replay.Scorer
	roots  []canon.Hash    // of the states that were scored, by round
	all    []replay.Scores // of each
}

// New returns the choice among the rounds of a lease. Without a metric that an order compares by, the last round is the best.
// An error that [replay.Unscored] knows says that nothing is scored here.
func New(ctx context.Context, env *role.Env, l *job.Lease) (*Choice, error) {
	j, err := env.Jobs.Get(ctx, l)
	if err != nil {
		return nil, err
	}
	c := &Choice{env: env, best: j.Recipe.Best}
	records, err := heldOut(ctx, env, l)
	if err == nil && records != nil {
		c.scorer, err = j.Scorer(records, env.Jobs.Exec)
	}
	return c, err
}

// Check returns an error if rounds shall be compared by a score that held-out records do not give.
func Check(j *replay.Job, heldOut *tensor.Tensor) error {
	by := j.Recipe.Best.Metric
	if by == "" {
		return nil
	}
	e, err := j.Training.Evaluate(heldOut.Shape)
	if err == nil && !slices.Contains(e.Metrics, by) {
		err = fmt.Errorf("problem.best.metric: this model and loss have no %s; choose by %s", by, strings.Join(e.Metrics, " or "))
	}
	return err
}

// heldOut returns the records that training never sees, nil if the order has none.
func heldOut(ctx context.Context, env *role.Env, l *job.Lease) (*tensor.Tensor, error) {
	file, ok := l.Order.Problem.File(replay.RoleHeldOut)
	if !ok {
		return nil, nil
	}
	in, err := env.Blobs.Open(ctx, l, file, blobs.Holders(l)...)
	if err != nil {
		return nil, err
	}
	t, err := replay.ReadRecords(in, int64(file.Size), scratch.Allocator(env.Store.Scratch()))
	if err != nil {
		return nil, fmt.Errorf("held-out records: %w", err)
	}
	return t, nil
}

// See scores the rounds that have been merged, but for those that it has seen; of an order that wants the last round, this one alone. A round
// that was merged anew, after a conviction, is scored anew.
func (c *Choice) See(ctx context.Context, l *job.Lease) error {
	same := 0
	for same < min(len(c.roots), l.Round) && c.roots[same] == l.Merges[same].Root {
		same++
	}
	c.roots, c.all = c.roots[:same], c.all[:same]
	for round := same; round < l.Round; round++ {
		var scores replay.Scores
		if last := round == l.Round-1; c.scorer != nil && (last || c.best.Metric != "") {
			s, err := c.env.States.Get(ctx, l, l.Merges[round].Root)
			if err != nil {
				return err
			}
			if scores, err = c.scorer.Scores(ctx, s); err != nil {
				return err
			}
		}
		c.roots, c.all = append(c.roots, l.Merges[round].Root), append(c.all, scores)
	}
	return nil
}

// Rate adds to a rating of an order's rounds how good they are; stopped is whether the order ended early.
func (c *Choice) Rate(r *replay.Rating, stopped bool) { r.Rate(c.best, c.all, stopped) }

// Watcher ends the home's own orders once no more of their rounds are wanted.
type Watcher struct {
	env    *role.Env
	tasks  *tasks.Set
	mu     sync.Mutex
	orders map[canon.Hash]*watched
}

// watched is an order whose rounds are compared, by one task at a time.
type watched struct {
	choice *Choice
	over   bool
}

// NewWatcher returns a watcher of the orders of a home. Its tasks end with the context of [Watcher.Block]; [Watcher.Wait] waits for that.
func NewWatcher(env *role.Env) *Watcher {
	return &Watcher{env: env, tasks: env.NewTasks(1), orders: map[canon.Hash]*watched{}}
}

// Block looks at the orders as a block has left them.
func (w *Watcher) Block(ctx context.Context) error {
	live, err := w.env.Leases.Live(ctx, w.env.Account.Address)
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := map[canon.Hash]*watched{}
	for _, x := range live {
		l, id := x.Lease, x.Order.ID()
		o := w.orders[id]
		if o == nil {
			o = &watched{over: !wanted(w.env, l)}
		}
		kept[id] = o
		if !o.over && l.Round > 0 && l.Phase == job.Active {
			w.tasks.Start(ctx, "compare the rounds of "+id.Short(), func(ctx context.Context) error { return w.see(ctx, l, o) })
		}
	}
	w.orders = kept
	return err
}

// Wait waits until nothing is done any more.
func (w *Watcher) Wait() { w.tasks.Wait() }

// wanted reports whether an order is the home's own and may be enough before its end.
func wanted(env *role.Env, l *job.Lease) bool {
	var r train.Recipe
	return l.Order.Consumer == env.Account.Address && l.Order.Problem.Merges() && canon.Unmarshal(l.Order.Problem.Recipe, &r) == nil && r.Best.Patience > 0
}

// see scores what has been merged, and ends the order if that is enough.
func (w *Watcher) see(ctx context.Context, l *job.Lease, o *watched) error {
	over := func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		o.over = true
	}
	if o.choice == nil {
		c, err := New(ctx, w.env, l)
		if replay.Unscored(err) {
			over()
			w.env.Log.Warn("rounds are not compared", "order", l.Order.ID(), "error", err)
			return nil
		} else if err != nil {
			return err
		}
		o.choice = c
	}
	if err := o.choice.See(ctx, l); err != nil {
		return err
	}
	// A state that may still be refuted is no reason to stop.
	if _, enough := replay.Best(o.choice.best, o.choice.all[:min(l.Windows.Final, len(o.choice.all))]); !enough {
		return nil
	}
	if err := w.env.Send(ctx, &workv1.MsgStop{Consumer: l.Order.Consumer, Order: l.Order.ID().String()}); err != nil {
		return fmt.Errorf("end order %s, of which no more rounds are wanted: %w", l.Order.ID().Short(), err)
	}
	w.env.Log.Info("no more rounds are wanted", "order", l.Order.ID(), "because", replay.Enough(o.choice.best, o.choice.all))
	over()
	return nil
}
