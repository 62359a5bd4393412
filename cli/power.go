package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/wire"
	amounts "github.com/tally-network/tally/core/money"
	"github.com/tally-network/tally/core/policy"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
	powerv1 "github.com/tally-network/tally/gen/tally/power/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	reservev1 "github.com/tally-network/tally/gen/tally/reserve/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/node/consume"
)

func (r *reader) powerOf() *cobra.Command {
	cmd := &cobra.Command{
		Use: "power [ACCOUNT]", GroupID: "network",
		Short: "Show computing power: of an account, and of the network",
		Long: `Shows how much verified computation counts as computing power. Accepted work
counts 0.6 of its ut, and drilling 0.4 (1 ut is 4.32e11 FLOP). It counts half as much a week later,
and nothing once the account is convicted. ACCOUNT is by default that of the home.

Rewards for work and for blocks are paid out of the reserve once their epoch is over, to who claims
them: tally tx reserve claim.

If all power is less than a base, founders vote with the difference. An account's votes are what it
would have on a proposal made now.

It also shows what a third of all power would cost somebody who has none, beside what
is at stake on the network.`,
		Example: "  tally power --home tally-devnet/provider-0\n  tally power tally1… --endpoints tally-devnet/endpoints.json --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: r.asks(func(ctx context.Context, args []string) error {
			who := r.account
			if len(args) > 0 {
				who = args[0]
			}
			p, err := r.power(ctx, who)
			if err != nil {
				return err
			}
			return r.e.show(p, func(w io.Writer) { p.tell(w) })
		}),
	}
	r.flags(cmd.Flags())
	return cmd
}

// powers are what tally power tells.
type powers struct {
	Account *worth `json:"account,omitempty"`
	Network worth  `json:"network"`
	Votes   votes  `json:"votes"`
	Third   third  `json:"third"`
	AtStake stakes `json:"at_stake"`
	Rewards reward `json:"rewards"`
}

// worth is computing power, in millionths of a ut.
type worth struct {
	Account       string  `json:"account,omitempty"`
	Effective     uint64  `json:"effective_micro_ut"`
	Share         float64 `json:"share"` // of the network's
	Training      uint64  `json:"training_micro_ut"`
	TrainingTotal uint64  `json:"training_total_micro_ut"`
	Drilling      uint64  `json:"drilling_micro_ut"`
	DrillingTotal uint64  `json:"drilling_total_micro_ut"`
}

// votes are what accounts weigh in a vote on a proposal made now, in millionths of a ut.
type votes struct {
	All      uint64 `json:"all_micro_ut"`
	Base     uint64 `json:"base_micro_ut"`
	Founders uint64 `json:"founders_micro_ut"` // what power lacks of the base
	Account  uint64 `json:"account_micro_ut"`
	Founder  uint64 `json:"of_it_as_founder_micro_ut"`
}

// third is what a third of all power takes of somebody who has none.
type third struct {
	Training uint64 `json:"training_micro_ut"`
	Burn     uint64 `json:"burn_utally"` // at least, beside the computation
}

// reward is what the reserve holds and an account has earned, in utally.
type reward struct {
	Held     uint64 `json:"held_utally"`     // that are owed to nobody
	Due      uint64 `json:"due_utally"`      // to the account, which may claim it
	Expected uint64 `json:"expected_utally"` // for it, by what the epoch under way has so far
	Ends     int64  `json:"epoch_ends_ms"`
}

// stakes are what a network holds for others, in utally.
type stakes struct {
	Stake  uint64 `json:"stake_utally"`
	Escrow uint64 `json:"escrow_utally"`
}

// power asks for the power of an account, none if it is "", and of the network.
func (r *reader) power(ctx context.Context, account string) (*powers, error) {
	q := powerv1.NewQueryClient(r.role.Chain.Conn)
	all, err := q.Total(ctx, &powerv1.QueryTotalRequest{})
	if err != nil {
		return nil, err
	}
	out := &powers{Network: newWorth(&all.Power, all.Power.Effective), Third: third{Training: all.Third}}
	if account != "" {
		a, err := q.Account(ctx, &powerv1.QueryAccountRequest{Account: account})
		if err != nil {
			return nil, err
		}
		w := newWorth(&a.Power, all.Power.Effective)
		out.Account = &w
	}
	rulesOfVotes, err := policyv1.NewQueryClient(r.role.Chain.Conn).Params(ctx, &policyv1.QueryParamsRequest{})
	if err != nil {
		return nil, err
	}
	if out.Votes, err = newVotes(rulesOfVotes, out.Network.Effective, out.Account); err != nil {
		return nil, err
	}
	rules, err := workv1.NewQueryClient(r.role.Chain.Conn).Params(ctx, &workv1.QueryParamsRequest{})
	if err != nil {
		return nil, err
	}
	if out.Third.Burn, err = amounts.Scale(all.Third, rules.Params.BurnUt, 1_000_000); err != nil {
		return nil, err
	}
	s, err := providerv1.NewQueryClient(r.role.Chain.Conn).Stake(ctx, &providerv1.QueryStakeRequest{})
	if err != nil {
		return nil, err
	}
	escrow, err := banktypes.NewQueryClient(r.role.Chain.Conn).Balance(ctx, &banktypes.QueryBalanceRequest{
		Address: consume.Escrow, Denom: coin.Denom,
	})
	if err != nil {
		return nil, err
	}
	out.AtStake = stakes{s.Stake, escrow.Balance.Amount.Uint64()}
	out.Rewards, err = r.rewards(ctx, account)
	return out, err
}

// rewards asks for those of an account, none if it is "".
func (r *reader) rewards(ctx context.Context, account string) (out reward, err error) {
	q := reservev1.NewQueryClient(r.role.Chain.Conn)
	s, err := q.Status(ctx, &reservev1.QueryStatusRequest{})
	if err != nil {
		return out, err
	}
	out.Held, out.Ends = s.Held, s.EndsMs
	if account == "" {
		return out, nil
	}
	a, err := q.Account(ctx, &reservev1.QueryAccountRequest{Account: account})
	if err != nil {
		return out, err
	}
	out.Due, out.Expected = a.Due, a.Expected
	return out, nil
}

func newWorth(p *powerv1.Power, of uint64) worth {
	w := worth{
		Account: p.Account, Effective: p.Effective, Training: p.Training, TrainingTotal: p.TrainingTotal,
		Drilling: p.Drilling, DrillingTotal: p.DrillingTotal,
	}
	if of > 0 {
		w.Share = float64(p.Effective) / float64(of)
	}
	return w
}

// newVotes says what an account, none if it is nil, weighs beside so much power of all.
func newVotes(r *policyv1.QueryParamsResponse, all uint64, a *worth) (v votes, err error) {
	v.Base, v.Founders = r.Params.Base, policy.Rules{Base: r.Params.Base}.Missing(all)
	if v.All = all + v.Founders; a == nil {
		return v, nil
	}
	weights, own := uint64(0), uint64(0)
	for _, f := range r.Founders {
		if weights += f.Weight; f.Account == a.Account {
			own = f.Weight
		}
	}
	if own > 0 {
		v.Founder, err = policy.Share(v.Founders, own, weights)
	}
	v.Account = a.Effective + v.Founder
	return v, err
}

func (p *powers) tell(w io.Writer) {
	if a := p.Account; a != nil {
		fmt.Fprintf(w, "%s has %s of computing power, %.3g %% of the network's\n", a.Account, wire.UtText(a.Effective), 100*a.Share)
		a.tell(w)
		fmt.Fprintf(w, "  votes     %s, %.3g %% of all that votes; %s of it as a founder\n", wire.UtText(p.Votes.Account), p.Votes.percent(p.Votes.Account), wire.UtText(p.Votes.Founder))
		fmt.Fprintf(w, "  rewards   %v to claim, and %v expected at %s\n", consume.Amount(p.Rewards.Due), consume.Amount(p.Rewards.Expected), wire.Moment(p.Rewards.Ends))
	}
	fmt.Fprintf(w, "The network has %s\n", wire.UtText(p.Network.Effective))
	p.Network.tell(w)
	fmt.Fprintf(w, "  votes     %s, of which founders have %s, %.3g %%: what power lacks of a base of %s\n", wire.UtText(p.Votes.All), wire.UtText(p.Votes.Founders), p.Votes.percent(p.Votes.Founders), wire.UtText(p.Votes.Base))
	fmt.Fprintf(w, "A third of it takes %s of training, for which %v are burnt. At stake are %v, and %v in escrow\n",
		wire.UtText(p.Third.Training), consume.Amount(p.Third.Burn), consume.Amount(p.AtStake.Stake), consume.Amount(p.AtStake.Escrow))
	fmt.Fprintf(w, "The reserve holds %v for rewards\n", consume.Amount(p.Rewards.Held))
}

// percent is the share of all votes that a part of them is.
func (v *votes) percent(part uint64) float64 { return 100 * float64(part) / float64(max(v.All, 1)) }

func (x *worth) tell(w io.Writer) {
	fmt.Fprintf(w, "  training  %s count, of %s ever\n", wire.UtText(x.Training), wire.UtText(x.TrainingTotal))
	if x.DrillingTotal > 0 {
		fmt.Fprintf(w, "  drilling  %s count, of %s ever\n", wire.UtText(x.Drilling), wire.UtText(x.DrillingTotal))
	}
}
