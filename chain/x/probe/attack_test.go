package probe_test

import (
	"slices"
	"testing"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/match"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// shown is the speed that a probe has shown in these tests: of tier A.
const shown = 20_000_000_000_000

// fast makes p0 a provider whose probe has shown tier A.
func fast(t testing.TB, c *chaintest.Chain) {
	t.Helper()
	if err := c.Do(func(ctx sdk.Context) error { return c.Provider.Probed(ctx, p0.Address, shown) }); err != nil {
		t.Fatal(err)
	}
}

// rate returns how fast the chain takes p0 to be.
func rate(t testing.TB, c *chaintest.Chain) uint64 {
	p := pace(t, c)
	return match.Pace{Work: p.Work, Time: p.TimeMs, Probed: p.Probed}.Speed()
}

// Work that is next to nothing says nothing of a machine: it waits for blocks alone. Else a stranger takes a rival's tier for a few tenths of a tally.
func TestManySmallRoundsTakeNobodysTier(t *testing.T) {
	c := network(t)
	fast(t, c)
	o := worktest.Order()
	o.Problem.Rounds, o.Problem.Shards, o.Problem.Steps, o.Problem.Interval = 150, 1, 1, 1
	o.Problem.StepFLOPs, o.Problem.StepBytes, o.Problem.MergeFLOPs, o.Problem.MergeBytes = 1e6, 1e6, 1e3, 1e3
	o.Conditions.MinProviders, o.Conditions.AuditSegments, o.Conditions.Auditors = 1, 0, 0
	o.Conditions.Speculate = job.MaxUnits
	o.Conditions.Needs.Accounts = []string{p0.String()}
	before := c.Balance(worktest.Consumer.Address)
	p := worktest.Begin(t, c, o)
	for unit := range o.Problem.Rounds {
		c.NextBlock(3 * time.Second) // the lead sees the round, the provider takes its files and computes
		p.Assign(unit, "p0")
		p.Submit(unit)
		p.Attest(unit)
		c.NextBlock(time.Second)
		p.Deliver(p.Lead(), p.MergeMsg())
	}
	p.Finish()
	t.Logf("cost the attacker %d utally; %+v; now %d FLOP/s", before-c.Balance(worktest.Consumer.Address), pace(t, c), rate(t, c))
	if got := rate(t, c); got < shown {
		t.Errorf("p0 is of %d FLOP/s, %d were shown", got, uint64(shown))
	}
}

// Who asks little is as fast as who asks much. Work counts as far as it is credited, so time must count as far.
func TestCheapWorkTakesNobodysTier(t *testing.T) {
	c := chaintest.New(t, worktest.Network(chaintest.Fund(worktest.Purse, p0.Name), cheap)...)
	fast(t, c)
	o := worktest.Order()
	o.Problem.Rounds, o.Problem.Shards, o.Problem.Steps, o.Problem.Interval = 1, 70, 256, 1
	o.Problem.StepFLOPs = 7e11 // a unit takes 9 s at 20 TFLOP/s
	long := 12 * time.Hour
	o.Conditions.MinProviders, o.Conditions.AuditSegments, o.Conditions.Auditors = 1, 0, 0
	o.Conditions.UnitTimeout, o.Conditions.UnitWindow, o.Conditions.Window = long.Milliseconds(), long.Milliseconds(), long.Milliseconds()
	o.Conditions.MaxPrice = 1000 * worktest.Tally
	o.Conditions.Needs.Accounts = []string{p0.String()}
	p := worktest.Begin(t, c, o)
	for unit := range o.Problem.Shards {
		p.Assign(unit, "p0")
		c.NextBlock(6 * time.Second)
		p.Submit(unit)
		p.Attest(unit)
		c.NextBlock(time.Second)
	}
	c.NextBlock(long)
	c.NextBlock(time.Second)
	p.Deliver(p.Lead(), p.MergeMsg())
	c.NextBlock(long)
	c.NextBlock(time.Second)
	t.Logf("%+v; now %d FLOP/s; phase %v", pace(t, c), rate(t, c), p.Lease().Phase)
	if got := rate(t, c); got < shown*9/10 {
		t.Errorf("p0 worked at its full speed, and is of %d FLOP/s, %d were shown", got, uint64(shown))
	}
}

// Who was convicted of a unit of its probe has no speed of the others.
func TestNobodyConvictedInAProbeShowsASpeed(t *testing.T) {
	c := network(t)
	o := order(t, p0, opened(t, c))
	worktest.Offer(c, "v0")
	c.Deliver(p0, worktest.PostOf(p0, o))
	c.NextBlock(time.Second)
	p := worktest.Join(t, c, o)
	p.SayOfFiles(workv1.WORD_HAD)
	for unit := range o.Problem.Shards {
		p.Compute(unit, "p0")
	}
	forged := o.Problem.Shards - 1
	target := job.UnitTarget(forged)
	subject, err := p.State().Subject(target, 0)
	if err != nil {
		t.Fatal(err)
	}
	opening := dispute.OpeningOf(subject.Points, 0)
	p.Deliver(worktest.Challenger, &disputev1.MsgOpen{Challenger: worktest.Challenger.String(), Order: p.ID.String(), Target: wire.TargetToProto(target), Opening: canon.Marshal(&opening)})
	c.NextBlock(time.Duration(dispute.DefaultRules.Clock+1) * time.Millisecond) // p0 has nothing to say
	c.NextBlock(time.Second)
	if !slices.Contains(p.Lease().Barred, p0.String()) {
		t.Fatalf("p0 was not convicted: %v", p.Lease().Barred)
	}
	p.Finish()
	if got := pace(t, c); got.Probed != 0 {
		t.Errorf("p0 was convicted, and is of %d FLOP/s", got.Probed)
	}
}

// cheap makes all providers ask for a hundredth of what they ask for elsewhere: 10 utally for 10⁹ FLOP.
func cheap(g *app.Genesis) {
	for i := range g.Peers {
		g.Peers[i].Listing.UnitPrice /= 100
	}
}
