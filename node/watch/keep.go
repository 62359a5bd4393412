package watch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/node/role"
)

// A watcher looks at every keeper that has attested to a unit: does it hand over a
// block of a checkpoint? One that has not for a quarter of the time in which it
// would have to answer on chain is asked there, once in a lease: if it keeps, it
// earns the fee; if not, it loses its bond.

// patience is the part of the time for an answer that a keeper may be out of reach.
const patience = 4

// keepers starts a look at every keeper of a lease that was not looked at yet.
func (w *watcher) keepers(ctx context.Context, l *job.Lease, now int64) {
	if l.Phase == job.Closing && now >= l.WindowEnd {
		return
	}
	for i := range l.Units {
		u := &l.Units[i]
		if u.Receipt == nil {
			continue
		}
		for _, a := range u.Attested {
			name := "keeper-" + u.Receipt.ID().String() + "-" + a.Keeper
			if a.Failed || w.noted(l, name) || w.noted(l, asked(a.Keeper)) {
				continue
			}
			w.looks.Start(ctx, name, func(ctx context.Context) error { return w.look(ctx, l, i, a.Keeper, name) })
		}
	}
}

func asked(keeper string) string { return "asked-" + keeper }

// look asks a keeper for a block, and the chain to ask it if it has given none for
// too long.
func (w *watcher) look(ctx context.Context, l *job.Lease, unit int, keeper, name string) error {
	err := w.reach(ctx, l, unit, keeper)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		w.missing.Delete(name)
		return w.note(l, name)
	}
	since, _ := w.missing.LoadOrStore(name, time.Now())
	if wait := time.Duration(l.Params.AnswerTime) * time.Millisecond / patience; time.Since(since.(time.Time)) < wait {
		return fmt.Errorf("keeper %s of unit %d: %w", keeper, unit, err)
	}
	_, err = w.kit.Account.Send(ctx, &workv1.MsgAsk{
		Sender: w.kit.Account.Address, Order: l.Order.ID().String(), Unit: uint32(unit), Attempt: uint32(l.Units[unit].Attempt), Keeper: keeper,
	})
	if err != nil {
		return fmt.Errorf("ask keeper %s about unit %d: %w", keeper, unit, err)
	}
	w.missing.Delete(name)
	w.kit.Emit(role.Event{Kind: role.Asked, Order: l.Order.ID(), Unit: unit, Text: "asked " + keeper + " to show what it keeps"})
	return w.note(l, asked(keeper))
}

// reach gets a block of one of a unit's checkpoints from a keeper.
func (w *watcher) reach(ctx context.Context, l *job.Lease, unit int, keeper string) error {
	c, err := w.kit.CheckpointsOf(ctx, l, l.Units[unit].Receipt)
	if err != nil {
		return err
	}
	return w.kit.Probe(ctx, keeper, c.States[rand.IntN(len(c.States))])
}
