package drilling_test

import (
	"testing"
	"time"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/x/drilling"
	drillingv1 "github.com/tally-network/tally/gen/tally/drilling/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// What a project says of itself stays in its line, and speaks to no terminal.
func TestTextsForgeNothing(t *testing.T) {
	c := network(t)
	for _, text := range []string{"a\n2  admitted", "a\x1b[2J", "a\x00", "a\u202eb", "a\tb", "a\u2028b"} {
		for _, m := range []*drillingv1.MsgRegisterProject{
			{Name: text}, {Name: "folding", Summary: text}, {Name: "folding", Contact: text},
		} {
			m.Partner, m.BudgetUt = partner.String(), 1
			c.Refuse(drilling.ErrProject, partner, m)
		}
	}
	c.Deliver(partner, &drillingv1.MsgRegisterProject{Partner: partner.String(), Name: "Faltung, 折り畳み", Summary: "ü – 10⁶ ut", BudgetUt: 1})
}

// However a task leaves the market, nothing of the budget stays pending, and a chain that goes on from its export does
// the same.
func TestNothingStaysPending(t *testing.T) {
	c := chaintest.New(t, worktest.Network(chaintest.Authority(senate.Name), func(g *app.Genesis) {
		g.Work.RetentionMs, g.Reserve = time.Hour.Milliseconds(), 1_000_000*worktest.Tally
	})...)
	n := admitted(t, c, 3)
	unmet := task(n)
	unmet.Nonce, unmet.Conditions.MinProviders = 2, 100
	c.Deliver(partner, worktest.Post(unmet))
	finish(t, worktest.Begin(t, c, task(n)))
	stopped := task(n)
	stopped.Nonce = 3
	worktest.Begin(t, c, stopped).Compute(0, "p0") // and nobody leads it on
	fork := c.Fork()
	a, e1 := c.Drilling.ExportGenesis(c.Ctx())
	b, e2 := fork.Drilling.ExportGenesis(fork.Ctx())
	if e1 != nil || e2 != nil || a.String() != b.String() {
		t.Errorf("%v becomes %v; %v, %v", a, b, e1, e2)
	}
	for _, c := range []*chaintest.Chain{c, fork} {
		for range 40 {
			c.NextBlock(worktest.LeadTimeout)
			if err := c.CheckInvariants(c.Ctx()); err != nil {
				t.Fatal(err)
			}
		}
		if x := get(t, c, n); x.Pending != 0 || x.Drilled != 1_500_000 || x.Kept != 0 {
			t.Errorf("%+v", x)
		}
		c.Deliver(partner, worktest.Post(unmet)) // which was forgotten
		c.Deliver(partner, &drillingv1.MsgEndProject{Sender: partner.String(), Project: n})
	}
}
