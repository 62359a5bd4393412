package work_test

import (
	"fmt"
	"testing"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	game "github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// shaped returns a lease with so many shards and segments, of which few units are
// received and the rest assigned, as many as a message may, but for one.
func shaped(t testing.TB, shards, segments int) *worktest.Play {
	t.Helper()
	o := worktest.Order()
	o.Problem.Rounds, o.Problem.Shards, o.Problem.Records = 1, shards, 1<<13
	o.Problem.Steps, o.Problem.Interval = segments, 1
	o.Problem.StepFLOPs = max(o.Problem.StepFLOPs/uint64(segments), 1)
	o.Conditions.MinProviders, o.Conditions.MaxPrice, o.Conditions.UnitTimeout = 1, 1_000*worktest.Tally, 1e9
	c := chaintest.New(t, worktest.Network(worktest.Rules(func(p *job.Params) { p.MaxOpen = 4096 }), func(g *app.Genesis) {
		for i := range g.Peers {
			g.Peers[i].Stake = 1 << 42
		}
	})...)
	p := worktest.Begin(t, c, o)
	for u := range min(shards, 128) - 1 {
		p.Queue(p.Lead(), p.AssignMsg(u, "p0"))
		if u%20 == 19 {
			p.Flush()
		}
	}
	p.Flush()
	for u := range 8 {
		p.Deliver(chaintest.Named("p0"), p.SubmitMsg(p.Receipt(u)))
	}
	for _, k := range p.Lease().Files.Custodians { // of unit 5, which can be disputed then
		p.Deliver(worktest.Named(t, k.Account), &workv1.MsgAttest{Custodian: k.Account, Order: p.ID.String(), Unit: 5})
	}
	return p
}

// gas returns what one message takes on a lease, without the transaction around it.
func gas(t testing.TB, p *worktest.Play, m sdk.Msg) uint64 {
	t.Helper()
	ctx := p.Ctx()
	if _, err := p.MsgServiceRouter().Handler(m)(ctx, m); err != nil {
		t.Fatalf("%T: %v", m, err)
	}
	return ctx.GasMeter().GasConsumed()
}

// spoken returns what parties say about units 4 and 5, and the next receipt.
func spoken(t testing.TB, p *worktest.Play, shards int) map[string]sdk.Msg {
	t.Helper()
	u := p.Unit(4)
	var points []canon.Hash
	for _, b := range p.Unit(5).Receipt.Checkpoints {
		points = append(points, canon.Hash(b))
	}
	tree := canon.NewTree(points)
	opening := game.Opening{From: points[0], To: points[1]}
	if len(points) > 2 {
		opening.FromPath, opening.ToPath = tree.Prove(0), tree.Prove(1)
	}
	out := map[string]sdk.Msg{
		"attest": &workv1.MsgAttest{Custodian: p.Lease().Files.Custodians[0].Account, Order: p.ID.String(), Unit: 4},
		"open": &disputev1.MsgOpen{
			Challenger: worktest.Challenger.String(), Order: p.ID.String(), Target: wire.TargetToProto(job.UnitTarget(5)), Opening: canon.Marshal(&opening),
		},
	}
	open := min(shards, 128) - 1
	out["submit"] = p.SubmitMsg(p.Receipt(open - 1))
	out["assign"] = p.AssignMsg(open, "p0")
	for _, a := range u.Audits {
		out["report"] = p.ReportMsg(4, worktest.Named(t, a.Auditor), true)
	}
	return out
}

// What a message costs does not depend on how large the order is: it reads the
// units that it names, and a count of the others.
func TestGasDoesNotGrowWithTheOrder(t *testing.T) {
	const limit = 1_000_000 // a fifth of what a client ever gives
	cost := map[string]uint64{}
	for _, shape := range []struct{ shards, segments int }{{10, 2}, {128, 2}, {10, 256}, {128, 256}} {
		p := shaped(t, shape.shards, shape.segments)
		for name, m := range spoken(t, p, shape.shards) {
			cost[fmt.Sprint(name, shape)] = gas(t, p, m)
		}
	}
	t.Log(cost)
	for _, name := range []string{"assign", "attest", "open", "submit", "report"} {
		for _, segments := range []string{" 2}", " 256}"} {
			few, many := cost[name+"{10"+segments], cost[name+"{128"+segments]
			if many > 2*few || many > limit {
				t.Errorf("%s takes %d gas of 10 units and %d of 128, of segments%s", name, few, many, segments)
			}
		}
	}
}
