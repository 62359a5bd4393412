package hire

import (
	"context"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/session"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/node/tabs"
)

// CheckBy buys a check, and no more.
func (c *Consumer) CheckBy(ctx context.Context, l *wire.Listed, q *lm.Request, reply []int32) (int, error) {
	x, err := c.hire(ctx, l, session.OfCheck, tabs.PriceOf(session.OfCheck, l.Prices, len(q.Prompt))(len(reply)))
	if err != nil {
		return 0, err
	}
	at, _, err := x.examine(ctx, q, reply)
	return at, err
}

// HandOver brings a proof.
func (c *Consumer) HandOver(ctx context.Context, l *wire.Listed, p tabs.Proof) error {
	return handOver(ctx, c, l, &p)
}
