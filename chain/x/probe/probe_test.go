package probe_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sdk "github.com/cosmos/cosmos-sdk/types"

	chainprobe "github.com/tally-network/tally/chain/x/probe"
	"github.com/tally-network/tally/chain/x/provider"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/probe"
	probev1 "github.com/tally-network/tally/gen/tally/probe/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

var p0 = chaintest.Named("p0")

func network(t testing.TB) *chaintest.Chain {
	t.Helper()
	return chaintest.New(t, worktest.Network(chaintest.Fund(worktest.Purse, p0.Name))...)
}

// opened opens a probe of p0 and returns its seed, which comes with the next block.
func opened(t testing.TB, c *chaintest.Chain) canon.Hash {
	t.Helper()
	c.Deliver(p0, &probev1.MsgOpen{Account: p0.String()})
	if p := underWay(t, c); p == nil || len(p.Seed) != 0 {
		t.Fatalf("a probe has its seed in the block in which it was opened: %+v", p)
	}
	c.NextBlock(time.Second)
	p := underWay(t, c)
	if p == nil || len(p.Seed) != len(canon.Hash{}) || p.DrawnMs == 0 {
		t.Fatalf("no seed: %+v", p)
	}
	return canon.Hash(p.Seed)
}

// underWay returns the probe of p0, nil if there is none.
func underWay(t testing.TB, c *chaintest.Chain) *probev1.Probe {
	t.Helper()
	r, err := probev1.NewQueryClient(c).Probe(context.Background(), &probev1.QueryProbeRequest{Account: p0.String()})
	if status.Code(err) == codes.NotFound {
		return nil
	} else if err != nil {
		t.Fatal(err)
	}
	return &r.Probe
}

// order is the probe of a seed, in units of a run each.
func order(t testing.TB, by chaintest.Account, seed canon.Hash) job.Order {
	t.Helper()
	o := worktest.Order()
	var err error
	if o.Problem, err = probe.Problem(seed, probe.Fewest, 1); err != nil {
		t.Fatal(err)
	}
	o.Problem.Files = []job.File{{Role: "model", CID: "bafymodel", Size: 10}, {Role: "start", CID: "bafystart", Size: 10}}
	o.Consumer, o.Contact.Key = by.String(), by.PeerKey()
	o.Conditions.MinProviders, o.Conditions.MaxPrice, o.Conditions.AuditSegments = 1, 100*worktest.Tally, probe.Audited(1)
	return o
}

// settled lets providers compute an order to its settlement, all units at once after a wait.
func settled(t testing.TB, c *chaintest.Chain, by chaintest.Account, o job.Order, wait time.Duration, providers ...string) {
	t.Helper()
	worktest.Offer(c, "v0")
	c.Deliver(by, worktest.PostOf(by, o))
	c.NextBlock(time.Second)
	p := worktest.Join(t, c, o)
	p.SayOfFiles(workv1.WORD_HAD)
	c.NextBlock(wait)
	for unit := range o.Problem.Shards {
		p.Compute(unit, providers[unit%len(providers)])
	}
	p.Finish()
}

// pace returns what the registry knows of p0.
func pace(t testing.TB, c *chaintest.Chain) providerv1.Pace {
	t.Helper()
	peer, err := c.Provider.Get(c.Ctx(), p0.Address)
	if err != nil {
		t.Fatal(err)
	}
	return peer.Pace
}

// All time from the seed on counts, that before the order too. What was measured before is forgotten.
func TestAProbeShowsASpeed(t *testing.T) {
	c := network(t)
	if err := c.Do(func(ctx sdk.Context) error { return c.Provider.Time(ctx, p0.Address, 1<<50, 1) }); err != nil {
		t.Fatal(err)
	}
	seed := opened(t, c)
	began := underWay(t, c).DrawnMs
	c.NextBlock(100 * time.Second)
	settled(t, c, p0, order(t, p0, seed), 20*time.Second, "p0")
	got := pace(t, c)
	if most := probe.Speed(probe.Fewest*probe.RunFLOPs, 120_000); got.Work != 0 || got.Probed == 0 || got.Probed > most || got.Probed < most/2 {
		t.Errorf("%+v of 16 runs in a little more than 120 s since %d, which are %d FLOP/s at most", got, began, most)
	}
	if p := underWay(t, c); p != nil {
		t.Errorf("it is still under way: %+v", p)
	}
}

// What was shown is forgotten after a month, unless it was shown again.
func TestASpeedStandsForAMonth(t *testing.T) {
	c := network(t)
	settled(t, c, p0, order(t, p0, opened(t, c)), 0, "p0")
	month := probe.StandsMs * time.Millisecond
	c.NextBlock(month - time.Hour)
	o := order(t, p0, opened(t, c))
	o.Nonce++
	settled(t, c, p0, o, 0, "p0")
	c.NextBlock(2 * time.Hour)
	c.NextBlock(time.Second)
	if pace(t, c).Probed == 0 {
		t.Error("it was shown again, and is forgotten")
	}
	fork := c.Fork()
	if err := fork.Do(func(ctx sdk.Context) error { return fork.Provider.Time(ctx, p0.Address, 1<<50, 600_000) }); err != nil {
		t.Fatal(err)
	}
	fork.NextBlock(month)
	fork.NextBlock(time.Second)
	if got := pace(t, fork); got.Probed != 0 || got.Work != 1<<50 {
		t.Errorf("after a month it is still of %d FLOP/s, or what it worked meanwhile is forgotten: %+v", got.Probed, got)
	}
}

// A probe is exported as it is loaded: the height at which it was opened is one of this chain alone.
func TestAProbeIsExportedAsItIsLoaded(t *testing.T) {
	c := network(t)
	c.Deliver(p0, &probev1.MsgOpen{Account: p0.String()})
	g, err := c.Probe.ExportGenesis(c.Ctx())
	if err != nil || len(g.Probes) != 1 || len(g.Probes[0].Seed) > 0 {
		t.Fatal(g, err)
	}
	ctx := c.Ctx()
	if err := c.Probe.InitGenesis(ctx, g); err != nil {
		t.Fatal(err)
	}
	if again, err := c.Probe.ExportGenesis(ctx); err != nil || again.String() != g.String() {
		t.Errorf("%v becomes %v, %v", g, again, err)
	}
}

// What others have computed does not count, and less than a minute never does.
func TestOnlyOwnUnitsCount(t *testing.T) {
	c := network(t)
	settled(t, c, p0, order(t, p0, opened(t, c)), 0, "p0", "p1")
	if got, want := pace(t, c).Probed, uint64(probe.Fewest/2*probe.RunFLOPs/60); got > want || got < want*3/4 {
		t.Errorf("%d FLOP/s for half of the units, want about %d", got, want)
	}
}

func TestWhatIsNoProbe(t *testing.T) {
	for name, play := range map[string]func(c *chaintest.Chain){
		"an order of somebody else": func(c *chaintest.Chain) {
			settled(t, c, worktest.Consumer, order(t, worktest.Consumer, opened(t, c)), 0, "p0")
		},
		"an order of an earlier seed": func(c *chaintest.Chain) {
			o := order(t, p0, opened(t, c))
			if opened(t, c) == canon.Hash(o.Problem.Start) {
				t.Fatal("the seed is the start")
			}
			settled(t, c, p0, o, 0, "p0")
		},
		"an order that nobody audits": func(c *chaintest.Chain) {
			o := order(t, p0, opened(t, c))
			o.Conditions.Auditors, o.Conditions.AuditSegments = 0, 0
			worktest.Offer(c, "v0")
			c.Deliver(p0, worktest.PostOf(p0, o))
			c.NextBlock(time.Second)
			p := worktest.Join(t, c, o)
			p.SayOfFiles(workv1.WORD_HAD)
			for unit := range o.Problem.Shards {
				p.Assign(unit, "p0")
				p.Submit(unit)
				p.Attest(unit)
			}
			p.Finish()
		},
		"a seed that was never drawn": func(c *chaintest.Chain) {
			opened(t, c)
			settled(t, c, p0, order(t, p0, canon.Hash{1}), 0, "p0")
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := network(t)
			if play(c); pace(t, c).Probed != 0 || underWay(t, c) == nil {
				t.Errorf("it showed %+v", pace(t, c))
			}
		})
	}
}

// Who computes nothing opens no probe.
func TestOnlyProvidersAreProbed(t *testing.T) {
	c := network(t)
	v0 := chaintest.Named("v0")
	c.Refuse(chainprobe.ErrProvider, v0, &probev1.MsgOpen{Account: v0.String()})
	c.Refuse(provider.ErrNotRegistered, worktest.Consumer, &probev1.MsgOpen{Account: worktest.Consumer.String()})
}

// A probe that waits for its seed gets it on the chain that goes on from an export.
func TestAProbeIsDrawnAfterAnExport(t *testing.T) {
	c := network(t)
	c.Deliver(p0, &probev1.MsgOpen{Account: p0.String()})
	fork := c.Fork()
	fork.NextBlock(time.Second)
	if p := underWay(t, fork); p == nil || len(p.Seed) == 0 {
		t.Errorf("%+v has no seed", p)
	}
}

// A chain goes on from an export with every probe, with a seed or before it.
func TestProbesOutliveAnExport(t *testing.T) {
	c := network(t)
	seed := opened(t, c)
	k := c.Probe
	g, err := k.ExportGenesis(c.Ctx())
	if err != nil || len(g.Probes) != 1 || canon.Hash(g.Probes[0].Seed) != seed || chainprobe.ValidateGenesis(g) != nil {
		t.Fatalf("%+v, %v", g, err)
	}
	for name, bend := range map[string]func(*probev1.Probe){
		"nobody's":            func(p *probev1.Probe) { p.Account = "tally1" },
		"a seed of few bytes": func(p *probev1.Probe) { p.Seed = p.Seed[:31] },
		"a time and no seed":  func(p *probev1.Probe) { p.Seed = nil },
		"before time":         func(p *probev1.Probe) { p.DrawnMs = -1 },
	} {
		bent := g.Probes[0]
		if bend(&bent); chainprobe.ValidateGenesis(&probev1.GenesisState{Probes: []probev1.Probe{bent}}) == nil {
			t.Errorf("a genesis with a probe that is %s", name)
		}
	}
	stranger := g.Probes[0]
	stranger.Account = worktest.Consumer.String()
	if err := c.Do(func(ctx sdk.Context) error {
		return k.InitGenesis(ctx, &probev1.GenesisState{Probes: []probev1.Probe{stranger}})
	}); err == nil {
		t.Error("a genesis with a probe of who is no peer")
	}
	if chainprobe.ValidateGenesis(&probev1.GenesisState{Probes: []probev1.Probe{g.Probes[0], g.Probes[0]}}) == nil {
		t.Error("two probes of an account")
	}
}
