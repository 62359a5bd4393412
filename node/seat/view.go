package seat

import (
	"context"
	"slices"

	"google.golang.org/grpc"

	"github.com/cosmos/cosmos-sdk/types/query"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/money"
	beaconv1 "github.com/tally-network/tally/gen/tally/beacon/v1"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/node/consume"
)

// View is who runs consensus, as people look at it. JSON names of amounts say their units.
type View struct {
	Epoch   uint64       `json:"epoch"`
	Next    int64        `json:"next_epoch_height"`
	Length  int64        `json:"epoch_blocks"`
	Drawn   uint64       `json:"drawn_epoch"` // the last that had a draw
	Votes   uint64       `json:"votes"`
	Weight  uint64       `json:"weight_micro_ut"`  // that the newest set followed from
	Missing uint64       `json:"missing_micro_ut"` // of it; eligible founders have it
	Base    uint64       `json:"base_micro_ut"`
	Members []MemberView `json:"members"`
	Third   Capture      `json:"third"`
}

// Capture is what a third of the votes takes of somebody who has none, at least, beside what orders have locked.
type Capture struct {
	Bond     uint64  `json:"bond_utally"`
	Training uint64  `json:"training_micro_ut"`
	Burn     uint64  `json:"burn_utally"`
	Escrow   uint64  `json:"escrow_utally"`
	Times    float64 `json:"times_escrow"` // bond and burn of what is in escrow; 0: nothing is
}

// MemberView is a member of consensus.
type MemberView struct {
	Account string  `json:"account"`
	Votes   int64   `json:"votes"`
	Share   float64 `json:"share"` // of all votes
	Power   uint64  `json:"power_micro_ut"`
	Bond    uint64  `json:"bond_utally"`
	Founder bool    `json:"founder,omitempty"`
	Status  string  `json:"status"`
	From    uint64  `json:"from_epoch"`
	Why     string  `json:"why_no_seats,omitempty"` // and what to do about it
}

// maxShown is how many members are shown, those with seats first.
const maxShown = 1_000

// Look asks a node for the set and the members, those with most votes first.
func Look(ctx context.Context, conn grpc.ClientConnInterface) (*View, error) {
	q := seatsv1.NewQueryClient(conn)
	s, err := q.Status(ctx, &seatsv1.QueryStatusRequest{})
	if err != nil {
		return nil, err
	}
	seats, err := q.Params(ctx, &seatsv1.QueryParamsRequest{})
	if err != nil {
		return nil, err
	}
	beacon, err := beaconv1.NewQueryClient(conn).Value(ctx, &beaconv1.QueryValueRequest{})
	if err != nil {
		return nil, err
	}
	rules, err := policyv1.NewQueryClient(conn).Params(ctx, &policyv1.QueryParamsRequest{})
	if err != nil {
		return nil, err
	}
	begun := &beacon.Calendar
	v := &View{
		Epoch: s.Epoch, Next: begun.Height + int64(s.Epoch+1-begun.Epoch)*begun.Blocks, Length: begun.Blocks,
		Drawn: s.LastDrawEpoch, Weight: s.Set.Weight, Missing: s.Set.Missing, Base: rules.Params.Base, Members: []MemberView{},
	}
	for _, x := range s.Set.Seats {
		v.Votes += x.Votes
	}
	add := func(account string) error {
		own, err := q.Member(ctx, &seatsv1.QueryMemberRequest{Account: account})
		if err != nil {
			return err
		}
		m := &own.Member
		v.Members = append(v.Members, MemberView{
			Account: m.Account, Votes: m.Votes, Share: float64(m.Votes) / float64(max(v.Votes, 1)), Power: own.Power.Effective, Bond: m.Bond,
			Founder: slices.ContainsFunc(rules.Founders, func(f policyv1.Founder) bool { return f.Account == m.Account }),
			Status:  wire.NameOf(m.Status), From: m.FromEpoch,
			Why: why(&seats.Params, m, s.Epoch, own.Power.Effective, max(v.Weight, v.Base)/max(seats.Params.Seats, 1)+1),
		})
		return nil
	}
	for _, x := range s.Set.Seats {
		if err := add(x.Member); err != nil {
			return nil, err
		}
	}
	for page := (&query.PageRequest{Limit: 100}); len(v.Members) < maxShown; {
		all, err := q.Members(ctx, &seatsv1.QueryMembersRequest{Pagination: page})
		if err != nil {
			return nil, err
		}
		for _, m := range all.Members {
			if m.Votes > 0 {
				continue // it is there
			}
			if err := add(m.Account); err != nil {
				return nil, err
			}
		}
		if page.Key = all.Pagination.NextKey; page.Key == nil {
			break
		}
	}
	if v.Third, err = capture(ctx, conn, max(v.Weight, v.Base)); err != nil {
		return nil, err
	}
	slices.SortStableFunc(v.Members, func(a, b MemberView) int { return int(b.Votes - a.Votes) })
	return v, nil
}

// capture asks what a third of the votes takes where so much power is counted. A set keeps three quarters of all seats
// filled, so a quarter of them may be a third.
func capture(ctx context.Context, conn grpc.ClientConnInterface, weight uint64) (c Capture, err error) {
	seats, err := seatsv1.NewQueryClient(conn).Params(ctx, &seatsv1.QueryParamsRequest{})
	if err != nil {
		return c, err
	}
	rules, err := workv1.NewQueryClient(conn).Params(ctx, &workv1.QueryParamsRequest{})
	if err != nil {
		return c, err
	}
	c.Bond = seats.Params.Seats / 4 * seats.Params.BondPerSeat
	if c.Training, err = money.Scale(weight/4, 10, 6); err != nil {
		return c, err
	}
	if c.Burn, err = money.Scale(c.Training, rules.Params.BurnUt, 1_000_000); err != nil {
		return c, err
	}
	b, err := banktypes.NewQueryClient(conn).Balance(ctx, &banktypes.QueryBalanceRequest{Address: consume.Escrow, Denom: coin.Denom})
	if err != nil {
		return c, err
	}
	if c.Escrow = b.Balance.Amount.Uint64(); c.Escrow > 0 {
		c.Times = float64(c.Bond+c.Burn) / float64(c.Escrow)
	}
	return c, nil
}
