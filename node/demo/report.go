package demo

import (
	"context"
	"fmt"
	"time"

	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/tally-network/tally/chain/x/provider"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	supplyv1 "github.com/tally-network/tally/gen/tally/supply/v1"
	"github.com/tally-network/tally/node/role"
)

// Report is the outcome of a demo. Losses are in nats per character, amounts in
// utally.
type Report struct {
	Order            string            `json:"order"`
	Status           string            `json:"status"`
	Reason           string            `json:"reason,omitempty"` // why it ended early
	Steps            int               `json:"steps"`
	Units            int               `json:"units"`
	LossFirst        float32           `json:"loss_first"`
	LossLast         float32           `json:"loss_last"`
	HeldOutLossFirst float32           `json:"heldout_loss_first"`
	HeldOutLossLast  float32           `json:"heldout_loss_last"`
	Price            uint64            `json:"price_utally"`
	Paid             map[string]uint64 `json:"paid"`
	Refund           uint64            `json:"refund_utally"`
	Burnt            uint64            `json:"burnt_utally"`
	Slashed          uint64            `json:"slashed_utally"`
	SlashPaid        map[string]uint64 `json:"slash_paid"`
	EscrowLeft       uint64            `json:"escrow_left_utally"`
	Audits           AuditReport       `json:"audits"`
	Dispute          *DisputeReport    `json:"dispute"`
	FinalRoot        string            `json:"final_root"`
	Trust            string            `json:"trust_root"` // of the chain: what `tally verify` needs to believe
	Bundle           string            `json:"bundle"`
	Safetensors      string            `json:"safetensors"`
	ONNX             string            `json:"onnx"`
	SupplyOK         bool              `json:"supply_ok"`
	FirstBlock       float64           `json:"first_block_seconds"`
	Seconds          float64           `json:"seconds"`

	Sample string            `json:"sample"` // text that the trained model writes
	Names  map[string]string `json:"-"`      // roles by account
}

// Name returns what people call an account: its role in the demo's network.
func (r *Report) Name(account string) string {
	if n := r.Names[account]; n != "" {
		return n
	}
	return account
}

// AuditReport counts audits, those of voided work included.
type AuditReport struct {
	Drawn  int `json:"drawn"`
	Passed int `json:"passed"`
	Failed int `json:"failed"`
}

// DisputeReport is where a dispute ended. Loser is an account.
type DisputeReport struct {
	Provider string `json:"provider"`
	Unit     int    `json:"unit"`
	Step     int    `json:"step"` // of the unit
	Node     int    `json:"node"` // of the step's program
	Op       string `json:"op"`
	Tile     [2]int `json:"tile"` // row and column
	Fold     int    `json:"fold"`
	Moves    int    `json:"moves"`
	Loser    string `json:"loser"`
}

// fill takes in what a settled lease says.
func (r *Report) fill(l *job.Lease) {
	p, m := &l.Order.Problem, &l.Ledger
	r.Order, r.Status, r.Reason = l.Order.ID().String(), l.Phase.String(), l.Reason
	r.Units, r.Steps = p.Units(), p.Units()*p.Steps
	r.Price, r.Refund, r.Burnt, r.Slashed, r.EscrowLeft = l.Quote.Price, m.Refund, m.Burnt, m.Slashed, m.Escrow
	r.Paid, r.SlashPaid = shares(m.Paid), shares(m.SlashPaid)
	if n, ok := r.SlashPaid[job.Insurance]; ok {
		delete(r.SlashPaid, job.Insurance)
		r.SlashPaid[insuranceFund] = n
	}
	r.FinalRoot = l.FinalRoot().String()
	r.Audits = AuditReport{l.Audits.Drawn, l.Audits.Passed, l.Audits.Failed}
}

// insuranceFund is the address of the account that is left what a slash does not
// pay out.
var insuranceFund = authtypes.NewModuleAddress(provider.Insurance).String()

func shares(in []job.Share) map[string]uint64 {
	out := map[string]uint64{}
	for _, s := range in {
		out[s.Account] = s.Amount
	}
	return out
}

// disputes returns all disputes about an order, oldest first.
func disputes(ctx context.Context, k *role.Kit, order canon.Hash) ([]disputev1.Dispute, error) {
	r, err := disputev1.NewQueryClient(k.Chain.Conn).Disputes(ctx, &disputev1.QueryDisputesRequest{Order: order.String()})
	if err != nil {
		return nil, fmt.Errorf("disputes of order %s: %w", order.Short(), err)
	}
	return r.Disputes, nil
}

// dispute reports the first dispute that convicted somebody, or else the first.
func (r *Report) dispute(ds []disputev1.Dispute) {
	for i := range ds {
		d := &ds[i]
		convicted := d.Loser == disputev1.SIDE_DEFENDER
		if r.Dispute != nil && !convicted {
			continue
		}
		loser := d.Parties.Challenger
		if convicted {
			loser = d.Parties.Defender
		}
		r.Dispute = &DisputeReport{
			Provider: d.Parties.Defender, Unit: int(d.Parties.Target.Index), Step: int(d.StepLo), Node: int(d.Node), Op: d.Op,
			Tile: [2]int{int(d.TileRow), int(d.TileCol)}, Fold: int(d.FoldFrom), Moves: int(d.Moves), Loser: loser,
		}
		if convicted {
			return
		}
	}
}

// supply asks the chain whether every ledger adds up.
func (r *Report) supply(ctx context.Context, k *role.Kit) error {
	q, err := supplyv1.NewQueryClient(k.Chain.Conn).Check(ctx, &supplyv1.QueryCheckRequest{})
	if err != nil {
		return fmt.Errorf("supply: %w", err)
	}
	r.SupplyOK = q.Ok
	return nil
}

func seconds(since time.Time) float64 {
	return float64(time.Since(since).Milliseconds()) / 1000
}
