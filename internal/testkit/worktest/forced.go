package worktest

import (
	"github.com/tally-network/tally/chain/vrf"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// Forced turns forced errors on, so often as the rules can be in equilibrium.
func Forced(p *job.Params) {
	p.ForcedBps, p.JackpotFactor, p.TaxBps, p.LateBps = 3000, 1, 9000, 3000
}

// Truth is what the segments of a unit's receipt give: what it says, but in the
// first.
func (p *Play) Truth(unit int) (outcomes []proof.Outcome) {
	p.T.Helper()
	for _, c := range p.Unit(unit).Receipt.Checkpoints[1:] {
		outcomes = append(outcomes, proof.Outcome{Before: canon.Sum("before", c), End: canon.Hash(c)})
	}
	outcomes[0].End = canon.Sum("truth", outcomes[0].End[:])
	return outcomes
}

// ProveDrawMsg returns the message by which the provider of a unit shows its forced draw, and
// whether the attempt was forced.
func (p *Play) ProveDrawMsg(unit int) (m *workv1.MsgProveDraw, forced bool) {
	p.T.Helper()
	l, u, seed := p.Lease(), p.Unit(unit), p.State().Units[unit].Seed
	output, pi, err := vrf.Prove(Named(p.T, u.Provider).VRF, proof.ForcedDrawInput(p.ID, seed, unit, int(u.Attempt)))
	if err != nil {
		p.T.Fatal(err)
	}
	m = &workv1.MsgProveDraw{Provider: u.Provider, Order: p.ID.String(), Unit: uint32(unit), Attempt: u.Attempt, Proof: pi}
	if forced = proof.Forced(output[:], l.Params.ForcedBps); forced {
		m.Truth = wire.OutcomesToProto(p.Truth(unit))
	}
	return m, forced
}

// DiligentMsg returns the report of an auditor that has re-executed a unit whose
// segments give the truth.
func (p *Play) DiligentMsg(unit int, auditor chaintest.Account, truth []proof.Outcome) *workv1.MsgReport {
	p.T.Helper()
	m, u := p.ReportMsg(unit, auditor, true), p.Unit(unit)
	output, err := vrf.Verify(auditor.VRFKey(), proof.AuditInput(canon.Hash(u.ReceiptId), auditor.String()), m.Proof)
	if err != nil {
		p.T.Fatal(err)
	}
	var outcomes []proof.Outcome
	for _, s := range proof.Segments(output[:], p.Order.Problem.Segments(), int(u.Audited)) {
		outcomes = append(outcomes, truth[s])
		m.Pass = m.Pass && truth[s].End == canon.Hash(u.Receipt.Checkpoints[s+1])
	}
	digest := proof.Digest(auditor.String(), canon.Hash(u.ReceiptId), outcomes)
	m.Digest = digest[:]
	return m
}
