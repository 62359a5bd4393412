package consume

import (
	"context"
	"fmt"
	"strings"

	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/train"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	"github.com/tally-network/tally/node/role"
)

// Outcome is what has come of a matched order. Amounts are in utally, by
// account.
type Outcome struct {
	Order  string `json:"order"`
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"` // why it ended early
	Wanted string `json:"wanted,omitempty"` // which round, and when no more, unless it is the last of all
	Computed
	Price      uint64            `json:"price_utally"`
	Deposit    uint64            `json:"deposit_utally"` // locked beside the price
	Paid       map[string]uint64 `json:"paid"`
	Refund     uint64            `json:"refund_utally"`
	Burnt      uint64            `json:"burnt_utally"`
	Tax        uint64            `json:"tax_utally"`
	Forced     bool              `json:"forced"`           // attempts were, so audits of them failed
	Forces     bool              `json:"forces"`           // the rules have some attempts be forced
	Prizes     map[string]uint64 `json:"prizes,omitempty"` // of forced attempts, out of the jackpot pool
	Slashed    uint64            `json:"slashed_utally"`
	SlashPaid  map[string]uint64 `json:"slash_paid"`
	EscrowLeft uint64            `json:"escrow_left_utally"`
	Audits     Audits            `json:"audits"`
	Dispute    *Dispute          `json:"dispute"`
	FinalRoot  string            `json:"final_root"`
}

// Computed says how much of the work is accepted.
type Computed struct {
	Steps   int `json:"steps"` // of accepted units
	Units   int `json:"units"` // that are accepted
	Ordered int `json:"units_ordered"`
	Merged  int `json:"rounds_merged"`
	Rounds  int `json:"rounds_ordered"`
}

// Audits counts audits, those of voided work included.
type Audits struct {
	Drawn  int `json:"drawn"`
	Passed int `json:"passed"`
	Failed int `json:"failed"`
}

// Dispute is where a dispute ended. Provider and Loser are accounts. Without an operator
// the search never came to a node, and the places from Step on mean nothing.
type Dispute struct {
	Provider string `json:"provider"`
	Unit     int    `json:"unit"` // or the round of a merge
	Attempt  int    `json:"attempt"`
	Merge    bool   `json:"merge,omitempty"`
	Step     int    `json:"step"` // of the unit
	Node     int    `json:"node"` // of the step's program
	Op       string `json:"op"`
	Tile     [2]int `json:"tile"` // row and column
	Fold     int    `json:"fold"`
	Moves    int    `json:"moves"`
	Loser    string `json:"loser"`
	Reason   string `json:"reason,omitempty"` // why it ended; empty while it is open
}

// Escrow is the account in which the market holds what orders have locked.
var Escrow = authtypes.NewModuleAddress("market").String()

// InsuranceFund is the account that is left what a slash does not pay out.
var InsuranceFund = authtypes.NewModuleAddress(job.Insurance).String()

// NewOutcome asks the chain what has come of a lease.
func NewOutcome(ctx context.Context, env *role.Env, l *job.Lease) (Outcome, error) {
	p, m, done := &l.Order.Problem, &l.Ledger, accepted(l)
	o := Outcome{
		Order: l.Order.ID().String(), Status: l.Phase.String(), Reason: l.Reason, Wanted: wanted(p),
		Computed: Computed{done * p.Steps, done, p.Units(), l.Round, p.Rounds},
		Price:    l.Quote.Price, Deposit: l.Deposit, Refund: m.Refund, Burnt: m.Burnt, Tax: m.Tax, Slashed: m.Slashed, EscrowLeft: m.Escrow,
		Paid: shares(m.Paid), SlashPaid: shares(m.SlashPaid), Prizes: shares(m.Prizes), FinalRoot: l.FinalRoot().String(),
		Forced: len(m.Prizes) > 0 || len(l.Forced()) > 0, Forces: l.Forces(),
		Audits: Audits{l.Audits.Drawn, l.Audits.Passed, l.Audits.Failed},
	}
	ds, err := Disputes(ctx, env, l.Order.ID())
	if err != nil {
		return o, err
	}
	o.Dispute = telling(ds)
	return o, nil
}

// wanted says which round of an order its consumer wants, and after how many others no more; "" if it is the last.
func wanted(p *job.Problem) string {
	var r train.Recipe
	if p.Kind != job.Training || canon.Unmarshal(p.Recipe, &r) != nil || r.Best.Metric == "" {
		return ""
	}
	out := "the round with the best " + strings.ReplaceAll(r.Best.Metric, "_", " ")
	if r.Best.Patience > 0 {
		out += fmt.Sprintf(", and no more after %d without a better one", r.Best.Patience)
	}
	return out
}

// accepted returns how many units of a lease are accepted: all of the rounds that are merged, and some of the one under way.
func accepted(l *job.Lease) int {
	n := l.Round * l.Order.Problem.Shards
	for _, u := range l.RoundUnits() {
		if u.Status == job.Accepted {
			n++
		}
	}
	return n
}

func shares(in []job.Share) map[string]uint64 {
	out := map[string]uint64{}
	for _, s := range in {
		account := s.Account
		if account == job.Insurance {
			account = InsuranceFund
		}
		out[account] += s.Amount
	}
	return out
}

// Disputes returns all disputes about an order, oldest first.
func Disputes(ctx context.Context, env *role.Env, order canon.Hash) ([]disputev1.Dispute, error) {
	r, err := disputev1.NewQueryClient(env.Chain.Conn).Disputes(ctx, &disputev1.QueryDisputesRequest{Order: order.String()})
	if err != nil {
		return nil, fmt.Errorf("disputes of order %s: %w", order.Short(), err)
	}
	return r.Disputes, nil
}

// telling returns the first dispute that convicted somebody, or else the first that is open or
// was lost: one that was dropped, as those about forced attempts are, decided nothing.
func telling(ds []disputev1.Dispute) *Dispute {
	var out *Dispute
	for i := range ds {
		d := &ds[i]
		convicted := d.Loser == disputev1.SIDE_DEFENDER
		dropped := d.Stage == dispute.Over.String() && d.Loser == disputev1.SIDE_UNSPECIFIED
		if out != nil && !convicted || dropped {
			continue
		}
		target, _ := wire.TargetFromProto(d.Parties.Target) // the chain has checked it
		out = &Dispute{
			Provider: d.Parties.Defender, Unit: target.Index(), Attempt: int(d.Parties.Attempt), Merge: target.Kind() == job.AboutMerge,
			Step: int(d.StepLo), Node: int(d.Node), Op: d.Op, Tile: [2]int{int(d.TileRow), int(d.TileCol)}, Fold: int(d.FoldFrom),
			Moves: int(d.Moves), Loser: Loser(d), Reason: d.Reason,
		}
		if convicted {
			break
		}
	}
	return out
}

// Loser returns the account that lost a dispute, "" while it is open.
func Loser(d *disputev1.Dispute) string {
	switch d.Loser {
	case disputev1.SIDE_DEFENDER:
		return d.Parties.Defender
	case disputev1.SIDE_CHALLENGER:
		return d.Parties.Challenger
	}
	return ""
}
