package demo

import (
	"context"
	"fmt"
	"time"

	supplyv1 "github.com/tally-network/tally/gen/tally/supply/v1"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/seat"
)

// Report is the outcome of a demo: of the training, of the batch beside it, and of the model when it is served. Losses are in nats per character, amounts in
// utally.
type Report struct {
	consume.Outcome
	consume.Delivery
	LossFirst        float32    `json:"loss_first"`
	HeldOutLossFirst float32    `json:"heldout_loss_first"`
	SupplyOK         bool       `json:"supply_ok"`
	FirstBlock       float64    `json:"first_block_seconds"`
	Seconds          float64    `json:"seconds"`
	Batch            *Score     `json:"batch"`
	Served           *Served    `json:"served"`
	Seats            *seat.View `json:"seats"` // in consensus

	Names map[string]string `json:"-"` // roles by account
}

// seats asks the chain who runs consensus, and by what power.
func (r *Report) seats(ctx context.Context, env *role.Env) (err error) {
	if r.Seats, err = seat.Look(ctx, env.Chain.Conn); err != nil {
		return fmt.Errorf("seats: %w", err)
	}
	return nil
}

// Name returns what people call an account: its role in the demo's network.
func (r *Report) Name(account string) string {
	if n := r.Names[account]; n != "" {
		return n
	}
	return account
}

// supply asks the chain whether every ledger adds up.
func (r *Report) supply(ctx context.Context, env *role.Env) error {
	q, err := supplyv1.NewQueryClient(env.Chain.Conn).Check(ctx, &supplyv1.QueryCheckRequest{})
	if err != nil {
		return fmt.Errorf("supply: %w", err)
	}
	r.SupplyOK = q.Ok
	return nil
}

func seconds(since time.Time) float64 {
	return float64(time.Since(since).Milliseconds()) / 1000
}
