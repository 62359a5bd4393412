package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/chain/wire"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/node/consume"
)

func (r *reader) seats() *cobra.Command {
	cmd := &cobra.Command{
		Use: "seats", GroupID: "network", Args: cobra.NoArgs,
		Short: "Show who runs consensus, and by what computing power",
		Long: `Shows who takes part in consensus: the votes that each member has, its computing power
with that of whoever delegates to it, and its bond. A draw in each epoch gives seats by
power. The set moves there by a quarter of its votes in an epoch at most. A vote is a
seat; on the way, votes are finer: they add up to 2^20, so look at the share.

Until the members' power reaches a base, what is missing of it belongs to the founders.

Take part by tally tx seats join, or let your power count for a member by tally tx
seats delegate.`,
		Example: "  tally seats --home tally-devnet/consumer\n  tally seats --endpoints tally-devnet/endpoints.json --json | jq '.members[].share'",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := r.dial(cmd.Context()); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, r.close()) }()
			v, err := r.seating(cmd.Context())
			if err != nil {
				return err
			}
			return r.e.show(v, func(w io.Writer) { v.tell(w) })
		},
	}
	r.flags(cmd.Flags())
	return cmd
}

// seating is what tally seats tells.
type seating struct {
	Epoch   uint64   `json:"epoch"`
	Drawn   uint64   `json:"drawn_epoch"` // the last that had a draw
	Votes   uint64   `json:"votes"`
	Weight  uint64   `json:"weight_micro_ut"`   // that the newest set followed from
	Missing uint64   `json:"founders_micro_ut"` // of it
	Base    uint64   `json:"base_micro_ut"`
	Members []seated `json:"members"`
}

// seated is a member of consensus.
type seated struct {
	Account string  `json:"account"`
	Votes   int64   `json:"votes"`
	Share   float64 `json:"share"` // of all votes
	Power   uint64  `json:"power_micro_ut"`
	Bond    uint64  `json:"bond_utally"`
	Founder bool    `json:"founder,omitempty"`
	Status  string  `json:"status"`
	From    uint64  `json:"from_epoch"`
}

// mostMembers is how many members are shown.
const mostMembers = 1_000

// seating asks for the set and all members, those with most votes first.
func (r *reader) seating(ctx context.Context) (*seating, error) {
	q := seatsv1.NewQueryClient(r.role.Chain.Conn)
	s, err := q.Status(ctx, &seatsv1.QueryStatusRequest{})
	if err != nil {
		return nil, err
	}
	rules, err := policyv1.NewQueryClient(r.role.Chain.Conn).Params(ctx, &policyv1.QueryParamsRequest{})
	if err != nil {
		return nil, err
	}
	v := &seating{Epoch: s.Epoch, Drawn: s.Drawn, Weight: s.Set.Weight, Missing: s.Set.Missing, Base: rules.Params.Base, Members: []seated{}}
	for _, x := range s.Set.Seats {
		v.Votes += x.Votes
	}
	page := &query.PageRequest{Limit: 100}
	for len(v.Members) < mostMembers {
		all, err := q.Members(ctx, &seatsv1.QueryMembersRequest{Pagination: page})
		if err != nil {
			return nil, err
		}
		for _, m := range all.Members {
			own, err := q.Member(ctx, &seatsv1.QueryMemberRequest{Account: m.Account})
			if err != nil {
				return nil, err
			}
			v.Members = append(v.Members, seated{
				Account: m.Account, Votes: m.Votes, Share: float64(m.Votes) / float64(max(v.Votes, 1)), Power: own.Power.Effective, Bond: m.Bond,
				Founder: slices.ContainsFunc(rules.Founders, func(f policyv1.Founder) bool { return f.Account == m.Account }),
				Status:  wire.NameOf(m.Status), From: m.From,
			})
		}
		if page.Key = all.Pagination.NextKey; page.Key == nil {
			break
		}
	}
	slices.SortStableFunc(v.Members, func(a, b seated) int { return int(b.Votes - a.Votes) })
	return v, nil
}

func (v *seating) tell(w io.Writer) {
	fmt.Fprintf(w, "Epoch %d; the last draw was in epoch %d\n", v.Epoch, v.Drawn)
	if v.Weight > 0 {
		fmt.Fprintf(w, "The set follows from %s, of which founders have %s: what members' power lacks of a base of %s\n", ut(v.Weight), ut(v.Missing), ut(v.Base))
	} else {
		fmt.Fprintln(w, "The set is that of the genesis")
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nmember\tvotes\tshare\tpower\tbond\t")
	for _, m := range v.Members {
		note := ""
		if m.Founder {
			note = "founder"
		}
		switch {
		case m.Status != "present":
			note = strings.TrimSpace(note + " " + m.Status)
		case m.From > v.Epoch:
			note = fmt.Sprintf("drawn from epoch %d on", m.From)
		}
		fmt.Fprintf(t, "%s\t%d\t%.1f %%\t%s\t%v\t%s\n", m.Account, m.Votes, 100*m.Share, ut(m.Power), consume.Amount(m.Bond), note)
	}
	_ = t.Flush()
}
