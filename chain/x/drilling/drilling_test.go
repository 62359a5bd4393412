package drilling_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/drilling"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	drillingv1 "github.com/tally-network/tally/gen/tally/drilling/v1"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	powerv1 "github.com/tally-network/tally/gen/tally/power/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

const deposit = 100 * worktest.Tally

var (
	partner = worktest.Consumer
	senate  = worktest.Challenger // stands for whom the network votes by
)

// network has an authority, which admits projects.
func network(t testing.TB) *chaintest.Chain {
	t.Helper()
	retain := func(g *app.Genesis) { g.Work.RetentionMs = time.Hour.Milliseconds() }
	return chaintest.New(t, worktest.Network(chaintest.Authority(senate.Name), retain)...)
}

// proposed registers a project of a budget and returns its number.
func proposed(t testing.TB, c *chaintest.Chain, ut uint64) uint64 {
	t.Helper()
	b := c.Deliver(partner, &drillingv1.MsgRegisterProject{Partner: partner.String(), Name: "folding", Summary: "shapes", Contact: "https://example.org", BudgetUt: ut})
	return chaintest.Events[*drillingv1.EventProject](t, b)[0].Project
}

// admitted is proposed, and admitted.
func admitted(t testing.TB, c *chaintest.Chain, ut uint64) uint64 {
	t.Helper()
	n := proposed(t, c, ut)
	c.Deliver(senate, &drillingv1.MsgAdmitProject{Authority: senate.String(), Project: n})
	return n
}

func task(project uint64) job.Order { return worktest.Task(project) }

func get(t *testing.T, c *chaintest.Chain, n uint64) drillingv1.Project {
	t.Helper()
	r, err := drillingv1.NewQueryClient(c).Project(context.Background(), &drillingv1.QueryProjectRequest{Project: n})
	if err != nil {
		t.Fatal(err)
	}
	return r.Project
}

func tasks(t *testing.T, c *chaintest.Chain, n uint64) []drillingv1.Task {
	t.Helper()
	r, err := drillingv1.NewQueryClient(c).Tasks(context.Background(), &drillingv1.QueryTasksRequest{Project: n})
	if err != nil {
		t.Fatal(err)
	}
	return r.Tasks
}

// drilled returns the drilling and the training of a provider, both ever counted.
func drilled(t *testing.T, c *chaintest.Chain, name string) powerv1.Power {
	t.Helper()
	r, err := powerv1.NewQueryClient(c).Account(context.Background(), &powerv1.QueryAccountRequest{Account: chaintest.Named(name).String()})
	if err != nil {
		t.Fatal(err)
	}
	return r.Power
}

// finish computes the units of a batch, and brings its lease to its settlement.
func finish(t *testing.T, p *worktest.Play) workv1.Settlement {
	t.Helper()
	for unit := range p.Order.Problem.Units() {
		p.Compute(unit, worktest.Providers[unit])
	}
	p.NextBlock(worktest.UnitWindow + time.Second)
	root := canon.Root(p.State().Ends(0)) // no program merges a batch
	p.Deliver(p.Lead(), &workv1.MsgMerge{Lead: p.Lease().Lead, Order: p.ID.String(), Root: root[:]})
	for range 20 {
		if p.Lease().Phase != workv1.PHASE_SETTLED {
			p.NextBlock(worktest.UnitWindow)
		}
	}
	r, err := p.Work.Settlement(context.Background(), &workv1.QuerySettlementRequest{Order: p.ID.String()})
	if err != nil {
		t.Fatal(err)
	}
	return r.Settlement
}

func TestTaskIsCreditedAsDrilling(t *testing.T) {
	c := network(t)
	n := admitted(t, c, 100)
	p := worktest.Begin(t, c, task(n))
	if x := get(t, c, n); x.Pending != 1_000_000 || x.Drilled != 0 || x.Tasks != 1 || x.Status != drillingv1.STATUS_ADMITTED {
		t.Fatalf("while it runs: %+v", x)
	}
	s := finish(t, p)
	if x := get(t, c, n); x.Pending != 0 || x.Drilled != 1_000_000 || x.Kept != 1 {
		t.Errorf("the project stands at %+v", x)
	}
	if all := tasks(t, c, n); len(all) != 1 || all[0].Order != p.ID.String() || all[0].Drilled != 1_000_000 || all[0].Pending != 0 {
		t.Errorf("its tasks are %v", all)
	}
	for _, name := range worktest.Providers[:2] {
		if x := drilled(t, c, name); x.DrillingTotal != 500_000 || x.TrainingTotal != 0 || x.Effective != 200_000 {
			t.Errorf("%s has %+v", name, x)
		}
	}
	// Whoever drills for himself burns as much as whoever trains for himself.
	rules := p.Lease().Params
	if s.Ledger.Burnt < rules.BurnUt {
		t.Errorf("%d utally are burnt for 1 ut, which is to cost %d", s.Ledger.Burnt, rules.BurnUt)
	}
}

// The same order without a project is training, and takes nothing of a budget.
func TestOtherOrdersAreTraining(t *testing.T) {
	c := network(t)
	n := admitted(t, c, 100)
	finish(t, worktest.Begin(t, c, task(0)))
	if x := drilled(t, c, "p0"); x.TrainingTotal != 500_000 || x.DrillingTotal != 0 {
		t.Errorf("p0 has %+v", x)
	}
	if x := get(t, c, n); x.Pending+x.Drilled+x.Tasks != 0 {
		t.Errorf("the project stands at %+v", x)
	}
}

// A task burns what all its work costs: the cap holds for drilling as for training.
func TestTasksPayForTheirCredit(t *testing.T) {
	c := network(t)
	n := admitted(t, c, 100)
	o := task(n)
	o.Conditions.Credit = false
	c.Refuse(drilling.ErrTask, partner, worktest.Post(o))
	if x := get(t, c, n); x.Tasks != 0 || x.Pending != 0 {
		t.Errorf("what was refused counts: %+v", x)
	}
}

func TestWhoMayPublish(t *testing.T) {
	c := network(t)
	o := task(1)
	c.Refuse(drilling.ErrNoProject, partner, worktest.Post(o))
	n := proposed(t, c, 1)
	c.Refuse(drilling.ErrTask, partner, worktest.Post(o))
	c.Deliver(senate, &drillingv1.MsgAdmitProject{Authority: senate.String(), Project: n})

	stranger := task(n)
	stranger.Consumer, stranger.Contact.Key = senate.String(), senate.PeerKey()
	c.Refuse(drilling.ErrTask, senate, worktest.PostOf(senate, stranger))
	unchecked := task(n)
	unchecked.Conditions.Auditors, unchecked.Conditions.AuditSegments = 0, 0
	c.Refuse(drilling.ErrTask, partner, worktest.Post(unchecked))

	c.Deliver(partner, worktest.Post(o))
	second := task(n)
	second.Nonce = 2
	c.Refuse(drilling.ErrTask, partner, worktest.Post(second)) // all of its ut is pending
	c.Deliver(partner, &marketv1.MsgCancelOrder{Consumer: partner.String(), Order: idOf(o)})
	if x := get(t, c, n); x.Pending != 0 || x.Tasks != 1 {
		t.Errorf("after it was taken back: %+v", x)
	}
	c.Deliver(partner, worktest.Post(second))
	c.Deliver(partner, &drillingv1.MsgEndProject{Sender: partner.String(), Project: n})
	third := task(n)
	third.Nonce = 3
	c.Refuse(drilling.ErrTask, partner, worktest.Post(third))
}

func idOf(o job.Order) string { return o.ID().String() }

// What a project took before its end goes on, and counts.
func TestTaskOutlivesItsProject(t *testing.T) {
	c := network(t)
	n := admitted(t, c, 100)
	before := c.Balance(partner.Address)
	p := worktest.Begin(t, c, task(n))
	locked := before - c.Balance(partner.Address)
	c.Deliver(senate, &drillingv1.MsgEndProject{Sender: senate.String(), Project: n})
	if got := c.Balance(partner.Address); got != before-locked+deposit {
		t.Errorf("the partner has %d, and gets its deposit back", got)
	}
	finish(t, p)
	if x := get(t, c, n); x.Drilled != 1_000_000 || x.Status != drillingv1.STATUS_ENDED || x.Deposit != 0 {
		t.Errorf("%+v", x)
	}
	if x := drilled(t, c, "p1"); x.DrillingTotal != 500_000 {
		t.Errorf("p1 has %+v", x)
	}
	// With its last order the project is forgotten.
	for range 8 {
		c.NextBlock(2 * time.Hour)
	}
	if _, err := drillingv1.NewQueryClient(c).Project(context.Background(), &drillingv1.QueryProjectRequest{Project: n}); err == nil {
		t.Error("a project that has ended is kept without tasks")
	}
}

func TestWhoDecidesOnProjects(t *testing.T) {
	c := network(t)
	before := c.Balance(partner.Address)
	n := proposed(t, c, 1)
	if got := before - c.Balance(partner.Address); got != deposit {
		t.Fatalf("a project costs %d", got)
	}
	v := chaintest.Named("v0")
	c.Refuse(module.ErrAuthority, partner, &drillingv1.MsgAdmitProject{Authority: partner.String(), Project: n})
	c.Refuse(drilling.ErrPartner, v, &drillingv1.MsgEndProject{Sender: v.String(), Project: n})
	c.Refuse(drilling.ErrNoProject, senate, &drillingv1.MsgAdmitProject{Authority: senate.String(), Project: n + 1})
	c.Deliver(senate, &drillingv1.MsgAdmitProject{Authority: senate.String(), Project: n})
	c.Refuse(drilling.ErrStatus, senate, &drillingv1.MsgAdmitProject{Authority: senate.String(), Project: n})
	c.Deliver(partner, &drillingv1.MsgEndProject{Sender: partner.String(), Project: n})
	if got := c.Balance(partner.Address); got != before {
		t.Errorf("%d of %d came back", got, before)
	}
	c.Refuse(drilling.ErrNoProject, partner, &drillingv1.MsgEndProject{Sender: partner.String(), Project: n})
}

func TestUnusableProjects(t *testing.T) {
	c := network(t)
	for name, bend := range map[string]func(m *drillingv1.MsgRegisterProject){
		"no name":         func(m *drillingv1.MsgRegisterProject) { m.Name = "" },
		"a long name":     func(m *drillingv1.MsgRegisterProject) { m.Name = strings.Repeat("n", 65) },
		"a long summary":  func(m *drillingv1.MsgRegisterProject) { m.Summary = strings.Repeat("n", 1025) },
		"a long contact":  func(m *drillingv1.MsgRegisterProject) { m.Contact = strings.Repeat("n", 257) },
		"no budget":       func(m *drillingv1.MsgRegisterProject) { m.BudgetUt = 0 },
		"a boundless one": func(m *drillingv1.MsgRegisterProject) { m.BudgetUt = 1 << 63 },
	} {
		m := &drillingv1.MsgRegisterProject{Partner: partner.String(), Name: "folding", BudgetUt: 1}
		bend(m)
		t.Log(name)
		c.Refuse(drilling.ErrProject, partner, m)
	}
}

func TestRulesAreTheAuthoritys(t *testing.T) {
	c := network(t)
	p := drillingv1.Params{Deposit: 7_000_000, FloorBps: 10_000}
	c.Refuse(module.ErrAuthority, partner, &drillingv1.MsgUpdateParams{Authority: partner.String(), Params: p})
	c.Refuse(module.ErrRules, senate, &drillingv1.MsgUpdateParams{Authority: senate.String(), Params: drillingv1.Params{FloorBps: 1}})
	c.Refuse(module.ErrRules, senate, &drillingv1.MsgUpdateParams{Authority: senate.String(), Params: drillingv1.Params{Deposit: 1, FloorBps: 10_001}})
	c.Deliver(senate, &drillingv1.MsgUpdateParams{Authority: senate.String(), Params: p})
	n := admitted(t, c, 100)
	if x := get(t, c, n); x.Deposit != 7_000_000 {
		t.Errorf("a project costs %d", x.Deposit)
	}
	c.Refuse(drilling.ErrTask, partner, worktest.Post(task(n))) // 1 of 2 runs is audited
}

// Whoever is convicted has nothing left of what it has drilled.
func TestConvictionTakesDrilling(t *testing.T) {
	c := network(t)
	n := admitted(t, c, 100)
	finish(t, worktest.Begin(t, c, task(n)))
	if x := drilled(t, c, "p0"); x.Effective == 0 {
		t.Fatal("p0 has drilled nothing")
	}
	again := task(n)
	again.Nonce = 2
	p := worktest.Begin(t, c, again)
	p.Assign(0, "p0")
	p.Submit(0)
	p.Attest(0)
	subject, err := p.State().Subject(job.UnitTarget(0), 0)
	if err != nil {
		t.Fatal(err)
	}
	o := dispute.OpeningOf(subject.Points, 0)
	c.Deliver(worktest.Challenger, &disputev1.MsgOpen{
		Challenger: worktest.Challenger.String(), Order: p.ID.String(), Target: wire.TargetToProto(job.UnitTarget(0)), Opening: canon.Marshal(&o),
	})
	c.NextBlock(time.Duration(dispute.DefaultRules.Clock+1) * time.Millisecond) // p0 is silent, and loses
	c.NextBlock(time.Second)
	if x := drilled(t, c, "p0"); x.Effective != 0 || x.Drilling != 0 || x.DrillingTotal != 500_000 {
		t.Errorf("p0 has %+v after its conviction", x)
	}
}

func TestGenesis(t *testing.T) {
	c := network(t)
	n := admitted(t, c, 100)
	proposed(t, c, 5)
	finish(t, worktest.Begin(t, c, task(n)))
	open := task(n)
	open.Nonce = 2
	open.Conditions.MinProviders = 100 // nobody meets it
	c.Deliver(partner, worktest.Post(open))
	g, err := c.Drilling.ExportGenesis(c.Ctx())
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Projects) != 2 || len(g.Tasks) != 2 || g.Next != 3 || drilling.ValidateGenesis(g) != nil {
		t.Fatalf("%v: %v", g, drilling.ValidateGenesis(g))
	}
	ctx, svc, cdc := chaintest.Store(t)
	bank := chaintest.NewBank()
	bank.Give(authtypes.NewModuleAddress(drilling.Name), 2*deposit)
	again := drilling.NewKeeper(cdc, svc, bank, nil)
	if err := again.InitGenesis(ctx, g); err != nil {
		t.Fatal(err)
	}
	if got, err := again.ExportGenesis(ctx); err != nil || got.String() != g.String() {
		t.Errorf("it comes back as %v: %v", got, err)
	}
	for name, bend := range map[string]func(g *drillingv1.GenesisState){
		"no deposit":               func(g *drillingv1.GenesisState) { g.Params.Deposit = 0 },
		"a strange authority":      func(g *drillingv1.GenesisState) { g.Authority = "cosmos1" },
		"a number that is to come": func(g *drillingv1.GenesisState) { g.Next = 2 },
		"one project twice":        func(g *drillingv1.GenesisState) { g.Projects[1] = g.Projects[0] },
		"a strange partner":        func(g *drillingv1.GenesisState) { g.Projects[0].Partner = "me" },
		"no name":                  func(g *drillingv1.GenesisState) { g.Projects[0].Name = "" },
		"more than the budget":     func(g *drillingv1.GenesisState) { g.Projects[0].Budget = 1 },
		"a deposit that is gone":   func(g *drillingv1.GenesisState) { g.Projects[0].Deposit = 0 },
		"ended without tasks": func(g *drillingv1.GenesisState) {
			g.Projects[1].Status, g.Projects[1].Deposit = drillingv1.STATUS_ENDED, 0
		},
		"an order twice":     func(g *drillingv1.GenesisState) { g.Tasks[1].Order = g.Tasks[0].Order },
		"no order":           func(g *drillingv1.GenesisState) { g.Tasks[0].Order = "x" },
		"tasks of nobody":    func(g *drillingv1.GenesisState) { g.Tasks[1].Project = 9 },
		"tasks out of order": func(g *drillingv1.GenesisState) { g.Tasks[0], g.Tasks[1] = g.Tasks[1], g.Tasks[0] },
		"other sums":         func(g *drillingv1.GenesisState) { g.Tasks[1].Pending-- },
		"a task too few":     func(g *drillingv1.GenesisState) { g.Tasks = g.Tasks[:1] },
		"sums that overflow": func(g *drillingv1.GenesisState) { g.Tasks[1].Drilled = 1<<64 - 1 },
	} {
		bent, err := c.Drilling.ExportGenesis(c.Ctx())
		if err != nil {
			t.Fatal(err)
		}
		bend(bent)
		if drilling.ValidateGenesis(bent) == nil {
			t.Errorf("%s: imported", name)
		}
	}
	if err := drilling.NewKeeper(cdc, svc, chaintest.NewBank(), nil).InitGenesis(ctx, g); err == nil || errors.Is(err, drilling.ErrNoProject) {
		t.Errorf("deposits that nobody holds: %v", err)
	}
}
