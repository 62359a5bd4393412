package demo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	supplyv1 "github.com/tally-network/tally/gen/tally/supply/v1"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/role"
)

// Report is the outcome of a demo: of the training, and of the batch beside it. Losses are in nats per character, amounts in
// utally.
type Report struct {
	consume.Outcome
	consume.Delivery
	LossFirst        float32 `json:"loss_first"`
	HeldOutLossFirst float32 `json:"heldout_loss_first"`
	SupplyOK         bool    `json:"supply_ok"`
	FirstBlock       float64 `json:"first_block_seconds"`
	Seconds          float64 `json:"seconds"`
	Sample           string  `json:"sample"` // text that the trained model writes
	Batch            *Score  `json:"batch"`
	Seats            []Seat  `json:"seats"` // in consensus, the most first

	Names map[string]string `json:"-"` // roles by account
}

// Seat is what a member of consensus has.
type Seat struct {
	Member string  `json:"member"`
	Votes  uint64  `json:"votes"`
	Share  float64 `json:"share"`          // of all votes
	Power  uint64  `json:"power_micro_ut"` // that counts for it now
	Before uint64  `json:"votes_at_genesis"`
}

// seats asks the chain who runs consensus, and by what power.
func (r *Report) seats(ctx context.Context, env *role.Env) error {
	q := seatsv1.NewQueryClient(env.Chain.Conn)
	s, err := q.Status(ctx, &seatsv1.QueryStatusRequest{})
	if err != nil {
		return fmt.Errorf("seats: %w", err)
	}
	founders, err := policyv1.NewQueryClient(env.Chain.Conn).Params(ctx, &policyv1.QueryParamsRequest{})
	if err != nil {
		return fmt.Errorf("founders: %w", err)
	}
	all := uint64(0)
	for _, x := range s.Set.Seats {
		all += x.Votes
	}
	for _, x := range s.Set.Seats {
		m, err := q.Member(ctx, &seatsv1.QueryMemberRequest{Account: x.Member})
		if err != nil {
			return fmt.Errorf("seats: %w", err)
		}
		seat := Seat{Member: x.Member, Votes: x.Votes, Share: float64(x.Votes) / float64(all), Power: m.Power.Effective}
		for _, f := range founders.Founders {
			if f.Account == x.Member {
				seat.Before = f.Weight
			}
		}
		r.Seats = append(r.Seats, seat)
	}
	slices.SortStableFunc(r.Seats, func(a, b Seat) int { return cmp.Compare(b.Votes, a.Votes) })
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
