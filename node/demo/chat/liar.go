package chat

import (
	"context"
	"errors"
	"time"

	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/graph"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/node/contest"
	"github.com/tally-network/tally/node/hire"
)

// liar is a model whose owner stands by what it has told, whatever the model says.
type liar struct{ contest.Model }

// Account implements contest.Model.
func (l liar) Account(ctx context.Context, r *lm.Request, reply []int32) (dispute.SequenceWitness, error) {
	w, err := l.Model.Account(ctx, r, reply)
	return stubborn{w}, err
}

// stubborn says that no token is wrong: it claims so of the node in which that comes out.
type stubborn struct{ dispute.SequenceWitness }

// Wrong implements dispute.SequenceWitness.
func (stubborn) Wrong(int) (int, error) { return -1, nil }

// Execute implements dispute.SequenceWitness.
func (s stubborn) Execute(chunk, column, judged int) (*dispute.Execution, error) {
	e, err := s.SequenceWitness.Execute(chunk, column, judged)
	if err != nil || judged == 0 {
		return e, err
	}
	p, right := e.Program, dispute.RightState()
	return dispute.Execute(p, p.Commit(), e.In, func(_ graph.Inputs, observe graph.Observer) (*graph.State, error) {
		for i, v := range e.Values {
			if i == p.Outputs[0].Index {
				v = right.Tensors[0]
			}
			if err := observe(i, v); err != nil {
				return nil, err
			}
		}
		return right, nil
	})
}

// watch tells how the dispute about a wrong reply goes, until the chain has decided.
func (d *demo) watch(ctx context.Context, r *hire.Receipt) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	d.say("  → %s disputes it on the chain", d.report.Name(r.Check.Dispute))
	chain, stage := d.network.Consumer.Env.Chain, ""
	for height := int64(0); ; {
		b, err := chain.Next(ctx, height)
		if err != nil {
			return err
		}
		height = b.Height
		all, err := disputev1.NewQueryClient(chain.Conn).Disputes(ctx, &disputev1.QueryDisputesRequest{Order: r.Receipt.Session.String()})
		if err != nil {
			return err
		}
		if len(all.Disputes) == 0 {
			continue
		}
		x := &all.Disputes[0]
		if x.Stage != stage && x.Loser == disputev1.SIDE_UNSPECIFIED {
			stage = x.Stage
			d.say("      move %-2d  %s", x.Moves, stage)
		}
		if x.Loser != disputev1.SIDE_UNSPECIFIED {
			return d.decided(ctx, r, x)
		}
	}
}

// decided tells how a dispute has ended.
func (d *demo) decided(ctx context.Context, r *hire.Receipt, x *disputev1.Dispute) error {
	on, err := d.consumer.Chain.Session(ctx, r.Receipt.Session)
	if err != nil {
		return err
	}
	d.report.Dispute = &Dispute{ID: x.Id, Moves: int(x.Moves), Challenger: d.report.Name(x.Parties.Challenger), Loser: d.report.Name(x.Parties.Defender), Reason: x.Reason, Stake: on.Reserved()}
	if x.Loser != disputev1.SIDE_DEFENDER || on.Convictions.OfProvider != x.Parties.Challenger {
		return errors.New("the chain has decided for the cheater")
	}
	d.say("  → the chain has recomputed a block of at most 32 terms: %s", x.Reason)
	d.say("  → %s is convicted. The session is settled %s later, and takes %d utally of its stake: for the consumer, for %s, and for the insurance fund",
		d.report.Dispute.Loser, time.Duration(on.Rules.Challenge)*time.Millisecond, on.Reserved(), d.report.Dispute.Challenger)
	return nil
}
