package job

import (
	"math/big"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// doubled is a program of one node, x + x over a million floats, as it is or as a liar commits
// to it.
func doubled(lie func(n *graph.Leaf, cost *graph.Cost)) *graph.Commitment {
	many := tensor.Shape{1_000_000}
	x := tensor.Access{Type: tensor.Float32, Shape: many, Dims: []tensor.Dim{{Terms: []tensor.Term{{Axis: 0, Step: 1}}}}}
	p := &graph.Program{
		Groups: 1, Slots: []graph.Slot{{Name: "x", Type: tensor.Float32, Shape: many}},
		Nodes: []graph.Opcode{{
			Primitive: &tensor.Primitive{Fn: tensor.Add, Type: tensor.Float32, Shape: many, Args: []tensor.Access{x, x}},
			From:      []graph.Ref{{Kind: graph.RefSlot}, {Kind: graph.RefSlot}},
		}},
		Outputs: []graph.Ref{{Kind: graph.RefNode}},
	}
	leaves, cost := p.Leaves(), p.Cost()
	if lie != nil {
		lie(&leaves[0], &cost)
	}
	return p.CommitAs(leaves, cost)
}

// costly begins a lease whose steps run the program, and cost what the order says.
func costly(t fataler, c *graph.Commitment, says graph.Cost, more ...func(*Match)) *world {
	t.Helper()
	m := testMatch()
	p := &m.Order.Problem
	p.Step, p.StepFLOPs, p.StepBytes = c.Root(), says.FLOPs, says.Bytes
	for _, change := range more {
		change(&m)
	}
	return newWorldOf(t, m)
}

// The ways in which an order can lie about its cost, and what shows each.
func TestInflatedCostIsExposed(t *testing.T) {
	honest := doubled(nil)
	twice := graph.Cost{FLOPs: 2 * honest.Cost.FLOPs, Bytes: honest.Cost.Bytes}
	forged := doubled(func(n *graph.Leaf, cost *graph.Cost) { n.Before.FLOPs = 1e9; cost.FLOPs += 1e9 })
	for name, x := range map[string]struct {
		program *graph.Commitment
		says    graph.Cost
		shown   *graph.Refutation
		words   string
	}{
		"order dearer than its program":  {honest, twice, honest.Open(), "a step takes 1000000 FLOP"},
		"order cheaper than its program": {honest, graph.Cost{FLOPs: 1, Bytes: 1}, honest.Open(), "the order says 1 FLOP"},
		"leaf with another sum":          {forged, forged.Cost, forged.Refute(), "before the first node"},
	} {
		t.Run(name, func(t *testing.T) {
			w := costly(t, x.program, x.says)
			w.compute(0, "p1", "")
			if err := w.assign(1, "p2"); err != nil {
				t.Fatal(err)
			}
			insurance := w.purse[Insurance]
			w.do(ExposeCost{By: "c", Shown: *x.shown})
			if l := &w.lease; l.Phase != Stopping || !strings.Contains(l.Reason, x.words) || l.Ledger.Refuter != "c" {
				t.Fatalf("the lease is %v (%s)", l.Phase, l.Reason)
			}
			if err := w.try(ExposeCost{By: "d", Shown: *x.shown}); err == nil || !strings.Contains(err.Error(), "already") {
				t.Errorf("exposed twice: %v", err)
			}
			if err := w.assign(2, "p1"); err == nil {
				t.Error("a unit was given out")
			}
			w.submit(w.receipt(1, ""))
			w.attest(1)
			w.audit(1, true)
			w.pass(20)
			w.do(w.merge())
			w.pass(200)
			l := &w.lease
			if l.Phase != Settled {
				t.Fatalf("the lease is %v", l.Phase)
			}
			reward := l.Deposit * l.Params.RewardBps / bps
			if w.purse["c"] != reward || l.Ledger.Burnt < l.Deposit-reward || w.purse[Insurance] != insurance || l.Ledger.Insured != 0 {
				t.Errorf("a reward of %d, burnt %d, insured %d", w.purse["c"], l.Ledger.Burnt, l.Ledger.Insured)
			}
			if w.purse["p1"] == 0 || w.purse["p2"] == 0 {
				t.Errorf("honest providers got %d and %d: their work must be paid", w.purse["p1"], w.purse["p2"])
			}
			if len(w.flops) != 0 || w.record["p1"] != 1 {
				t.Errorf("credited %v, vouched %v", w.flops, w.record)
			}
		})
	}
}

func TestSoundCostIsNotExposed(t *testing.T) {
	honest, other := doubled(nil), doubled(func(_ *graph.Leaf, cost *graph.Cost) { cost.FLOPs++ })
	w := costly(t, honest, honest.Cost)
	for name, x := range map[string]struct {
		e     ExposeCost
		words string
	}{
		"header":               {ExposeCost{By: "c", Shown: *honest.Open()}, "nothing wrong"},
		"node":                 {ExposeCost{By: "c", Shown: *honest.Open(graph.Opened{List: graph.InNodes})}, "nothing wrong"},
		"another program":      {ExposeCost{By: "c", Shown: *other.Open()}, "not that of program"},
		"the program of merge": {ExposeCost{By: "c", Merge: true, Shown: *honest.Open()}, "the program of a merge"},
	} {
		if err := w.try(x.e); err == nil || !strings.Contains(err.Error(), x.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWrongCostOfAMergeIsExposed(t *testing.T) {
	c := doubled(nil)
	w := costly(t, c, c.Cost, func(m *Match) { m.Order.Problem.Merge = canon.Sum("merge") })
	if err := w.try(ExposeCost{By: "c", Merge: true, Shown: *c.Open()}); err == nil {
		t.Fatal("the header of another program was taken")
	}
	w = costly(t, c, c.Cost, func(m *Match) { m.Order.Problem.Merge = c.Root() })
	w.do(ExposeCost{By: "c", Merge: true, Shown: *c.Open()})
	if !strings.Contains(w.lease.Reason, "a merge takes") {
		t.Errorf("stopped: %s", w.lease.Reason)
	}
}

// It can be exposed until the lease is settled: nothing is credited before.
func TestCostIsExposedInTheLastWindow(t *testing.T) {
	c := doubled(nil)
	w := costly(t, c, graph.Cost{FLOPs: 5e9, Bytes: 1e9})
	for w.lease.Round < w.lease.Order.Problem.Rounds {
		w.finishRound()
	}
	w.do(ExposeCost{By: "c", Shown: *c.Open()})
	w.pass(60)
	if len(w.flops) != 0 || w.lease.Reason == "" || w.purse["c"] == 0 {
		t.Errorf("credited %v, stopped %q, reward %d", w.flops, w.lease.Reason, w.purse["c"])
	}
}

// Who exposes itself loses: whatever the deposit, less than half of it comes back.
func TestExposingOneselfCosts(t *testing.T) {
	c := doubled(nil)
	for _, deposit := range []uint64{0, 1, 3, 2_000, 1 << 40} {
		w := costly(t, c, graph.Cost{FLOPs: 5e9, Bytes: 1e9}, func(m *Match) { m.Deposit = deposit })
		w.do(ExposeCost{By: "consumer", Shown: *c.Open()})
		w.pass(200)
		l := &w.lease
		if l.Phase != Settled || w.purse["consumer"] > l.Quote.Price+(deposit+1)/2 {
			t.Errorf("of a deposit of %d the consumer has %d back beside the price", deposit, w.purse["consumer"]-l.Quote.Price)
		}
	}
}

// Where the files cannot be had, the deposit is promised already.
func TestCostOfMissingFilesIsNotExposed(t *testing.T) {
	c := doubled(nil)
	m := testMatch()
	m.Order.Problem.Step = c.Root()
	w := beginWorld(t, m)
	w.sayOfFiles(Missing)
	if err := w.try(ExposeCost{By: "c", Shown: *c.Open()}); err == nil || !strings.Contains(err.Error(), "forfeit already") {
		t.Error(err)
	}
}

// Wash training, padded graphs, the same order again and again: whatever people in league ask
// of one another, a ut costs them burn_ut utally that nobody gets back.
func TestCreditIsPaidFor(t *testing.T) {
	for _, rate := range []uint64{1, 400, 5000} {
		for _, per := range []uint64{0, 5000, 80_000} {
			for _, all := range []bool{false, true} {
				m := testMatch()
				m.Params.BurnUT, m.Order.Conditions.Credit, m.Order.Conditions.MaxPrice = per, all, 1<<40
				for i := range m.Providers {
					m.Providers[i].Rates = Rates{GFLOP: rate}
				}
				w := newWorldOf(t, m)
				w.finish()
				var credited uint64
				for _, flops := range w.flops { // order: a sum
					credited += flops
				}
				l := &w.lease
				work, burnt := l.Order.Problem.UnitFLOPs()*uint64(len(creditable(l))), l.Ledger.Burnt
				paid, got := new(big.Int).SetUint64(burnt), new(big.Int).SetUint64(credited)
				paid.Mul(paid, big.NewInt(UT))
				got.Mul(got, new(big.Int).SetUint64(per))
				switch {
				case credited > work || got.Cmp(paid) > 0:
					t.Errorf("at %d a GFLOP and %d a ut %d FLOP of %d are credited for %d utally", rate, per, credited, work, burnt)
				case (all || per == 0) && credited+10 < work: // less than one for each unit is lost by rounding
					t.Errorf("at %d a GFLOP and %d a ut %d FLOP of %d are credited to who burnt for all", rate, per, credited, work)
				case !all && burnt > (l.Quote.Honest*m.Params.BurnBps+bps-1)/bps:
					t.Errorf("at %d a GFLOP and %d a ut %d are burnt of an order that asks for no more credit", rate, per, burnt)
				}
			}
		}
	}
}

// What the quote says of a burn for credit is what is burnt at most, and part of the price.
func TestBurnForCreditIsQuoted(t *testing.T) {
	m := testMatch()
	quote := func() Quote {
		q, err := NewQuote(&m.Order.Problem, &m.Order.Conditions, Rates{GFLOP: 1}, 500, m.Params.Tariff)
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	usual := quote()
	m.Order.Conditions.Credit = true
	full := quote()
	flops := m.Order.Problem.UnitFLOPs() * uint64(m.Order.Problem.Units())
	if want := (flops*m.Params.BurnUT + UT - 1) / UT; full.Burn != want || full.Burn <= usual.Burn || full.Price-usual.Price != full.Burn-usual.Burn {
		t.Errorf("burnt %d of %d, usually %d of %d; want %d", full.Burn, full.Price, usual.Burn, usual.Price, want)
	}
}
