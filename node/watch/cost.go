package watch

import (
	"context"
	"errors"
	"fmt"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/node/events"
	"github.com/tally-network/tally/node/replay"
)

// costName is the note that an order's cost was looked at.
const costName = "cost"

// cost loads an order, and shows the chain if it lies about what it costs. Files that are not
// those of the order show nothing: that is for its custodians.
func (c *challenger) cost(ctx context.Context, l *job.Lease) error {
	_, err := c.env.Jobs.Get(ctx, l)
	if m := exposing(l, c.env.Account.Address, err); m != nil {
		if err := c.env.Send(ctx, m); err != nil {
			return fmt.Errorf("expose the cost of order %s: %w", m.Order, err)
		}
		c.env.Emit(events.Event{Kind: events.Exposed, Order: l.Order.ID(), Unit: -1, Text: "showed that the order lies: " + err.Error()})
		return c.note(l, costName)
	}
	var unfit *replay.UnfitError
	if err == nil || errors.As(err, &unfit) {
		return c.note(l, costName)
	}
	return err
}

// exposing returns what shows the chain why an order could not be loaded, nil if it lies about no
// cost or that was shown already.
func exposing(l *job.Lease, sender string, err error) *workv1.MsgExposeCost {
	var lie *replay.CostError
	if !errors.As(err, &lie) || l.Ledger.Refuter != "" || l.Files.Said == job.Missing || l.Phase == job.Settled {
		return nil
	}
	return &workv1.MsgExposeCost{Sender: sender, Order: l.Order.ID().String(), Merge: lie.Merge, Shown: canon.Marshal(lie.Shown)}
}
