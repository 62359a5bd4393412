package provide

import (
	"context"
	"fmt"
	"slices"

	"github.com/tally-network/tally/chain/vrf"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/node/events"
)

// forcedDraw is what the VRF of a provider says about an attempt of a unit. It follows
// from keys and chain, so a restart draws the same.
type forcedDraw struct {
	output []byte
	proof  []byte
	forced bool
	wrong  int // the segment to be presented wrong, if it is forced
}

func (p *provider) forcedDraw(l *job.Lease, unit, attempt int) (forcedDraw, error) {
	output, pi, err := vrf.Prove(p.env.Keys.VRF, proof.ForcedDrawInput(l.Order.ID(), l.Units[unit].Seed, unit, attempt))
	if err != nil {
		return forcedDraw{}, err
	}
	forced := l.Forces() && proof.Forced(output[:], l.Params.ForcedBps)
	return forcedDraw{output[:], pi, forced, proof.Altered(output[:], l.Order.Problem.Segments())}, nil
}

// present returns the state with which a segment ends as far as the receipt goes,
// which the next one goes on from.
func (d forcedDraw) present(segment int, s *state) *state {
	if d.forced && segment == d.wrong {
		return proof.Alter(s, d.output)
	}
	return s
}

// truth returns what the segments of a forced attempt give. Those that auditors
// answered for are computed again, and the one that was presented wrong.
func (p *provider) truth(ctx context.Context, l *job.Lease, i int, d forcedDraw) ([]proof.Outcome, error) {
	u := &l.Units[i]
	var truth []proof.Outcome
	for _, end := range u.Receipt.Checkpoints[1:] {
		truth = append(truth, proof.Outcome{End: end})
	}
	again := u.AuditedSegments()
	if !slices.Contains(again, d.wrong) {
		again = append(again, d.wrong)
	}
	outcomes, err := p.env.States.Truth(ctx, l, u.Receipt, again)
	if err != nil {
		return nil, err
	}
	for j, s := range again {
		truth[s] = outcomes[j]
	}
	return truth, nil
}

// proveDraw tells the chain whether an attempt was forced, and the truth if it was.
func (p *provider) proveDraw(ctx context.Context, l *job.Lease, i int) error {
	l, err := p.env.Leases.Fill(ctx, l, l.AboutUnit(i))
	if err != nil {
		return err
	}
	r := l.Units[i].Receipt
	d, err := p.forcedDraw(l, i, r.Attempt)
	if err != nil {
		return err
	}
	m := &workv1.MsgProveDraw{
		Provider: r.Provider, Order: r.Order.String(), Unit: uint32(i), Attempt: uint32(r.Attempt), Proof: d.proof,
	}
	text := "was not forced"
	if d.forced {
		text = fmt.Sprintf("was forced: segment %d is wrong", d.wrong)
		truth, err := p.truth(ctx, l, i, d)
		if err != nil {
			return fmt.Errorf("the truth of unit %d: %w", i, err)
		}
		m.Truth = wire.OutcomesToProto(truth)
	}
	if err := p.env.Send(ctx, m); err != nil {
		return fmt.Errorf("show the forced draw of unit %d: %w", i, err)
	}
	p.env.Emit(events.Event{Kind: events.ProvedDraw, Order: r.Order, Unit: i, Text: text})
	return nil
}
