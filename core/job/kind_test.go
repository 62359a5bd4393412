package job

import (
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/match"
	"github.com/tally-network/tally/core/proof"
)

// batchOrder is an order of independent steps: 45 records, four a step, four steps a unit.
func batchOrder() Order {
	o := testOrder()
	p := &o.Problem
	p.Kind, p.Rounds, p.Shards, p.Steps, p.Interval, p.Batch, p.Records, p.Seed = Batch, 1, 3, 4, 1, 4, 45, 0
	p.Merge, p.Data, p.MergeFLOPs, p.MergeBytes = canon.Hash{}, canon.Hash{}, 0, 0
	return o
}

func batchWorld(t fataler) *world {
	t.Helper()
	m := testMatch()
	m.Order = batchOrder()
	return newWorldOf(t, m)
}

func TestBatchIsSettled(t *testing.T) {
	w := batchWorld(t)
	for unit := range 3 {
		w.compute(unit, []string{"p0", "p1", "p2"}[unit], "")
	}
	w.pass(20)
	good := w.merge()
	for name, bend := range map[string]func(*PostMerge){
		"another root": func(m *PostMerge) { m.Root[0] ^= 1 },
		"data":         func(m *PostMerge) { m.Data = File{"state", "cid", 1} },
	} {
		m := good
		bend(&m)
		if err := w.try(m); err == nil || !strings.Contains(err.Error(), "merged by no program") {
			t.Errorf("a merge with %s: %v", name, err)
		}
	}
	w.do(good)
	l := &w.lease
	var results []canon.Hash
	for i := range l.Units {
		results = append(results, canon.Root(l.Units[i].Receipt.Checkpoints[1:]))
	}
	if l.FinalRoot() != canon.Root(results) {
		t.Errorf("the order ends in %v, not in the root over all results", l.FinalRoot())
	}
	if err := w.try(OpenDispute{ID: 1, Target: MergeTarget(0), Challenger: "c"}); err == nil {
		t.Error("a merge was disputed that nobody computes")
	}
	w.pass(60)
	if l.Phase != Settled || l.Reason != "" || w.flops["p2"] != 4*5e9 {
		t.Fatalf("the lease is %v (%s), credit %d", l.Phase, l.Reason, w.flops["p2"])
	}
}

// Fraud in a batch makes one unit void, whenever it is found, and its bond covers no more.
func TestFraudInABatchVoidsOneUnit(t *testing.T) {
	w := batchWorld(t)
	for unit := range 3 {
		w.compute(unit, []string{"p0", "p1", "p2"}[unit], []string{"lie", "", ""}[unit])
	}
	b, err := w.lease.Quote.Bond(&w.lease.Order.Problem, &w.lease.Order.Conditions, &w.lease.Params, 0, 1)
	if third := (w.lease.Quote.Honest + 2) / 3; err != nil || b.Void != third*w.lease.Params.BondFactor || w.held["p0"] != max(b.Void, b.Gain) {
		t.Errorf("the bond of a unit is %+v (%v), a third of the honest work is %d, %d are held", b, err, third, w.held["p0"])
	}
	w.pass(20)
	w.do(w.merge())
	w.do(OpenDispute{ID: 1, Target: UnitTarget(0), Segment: 3, Challenger: "c"})
	w.do(CloseDispute{ID: 1, Loser: dispute.Defender})
	l := &w.lease
	if l.Round != 0 || l.Units[0].Status != Open || l.Units[1].Status != Accepted || l.Units[2].Status != Accepted || w.held["p0"] != 0 {
		t.Fatalf("round %d, units %v %v %v, %d held", l.Round, l.Units[0].Status, l.Units[1].Status, l.Units[2].Status, w.held["p0"])
	}
	w.finish()
}

// What a receipt of a batch claims: each step reads the records, in their order.
func TestClaimsOfABatch(t *testing.T) {
	w := batchWorld(t)
	w.compute(2, "p0", "")
	l := &w.lease
	s, err := l.Subject(UnitTarget(2), 0)
	if err != nil {
		t.Fatal(err)
	}
	c := &s.Claim
	if !c.Independent || c.Interval != 1 || c.Segments() != 4 || !slices.Equal(c.Inputs, []canon.Hash{l.Order.Problem.Start}) {
		t.Errorf("a unit claims %+v", c)
	}
	var rows []int64
	for step := range c.Steps {
		for i := range 4 {
			rows = append(rows, c.Batch.Row(step, i))
		}
	}
	if want := []int64{32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 44, 44, 44}; !slices.Equal(rows, want) {
		t.Errorf("unit 2 reads records %v, want %v", rows, want)
	}
	p, r := &l.Order.Problem, l.Units[2].Receipt
	for i, record := range rows[:13] {
		if unit, step, row := p.RunOf(int(record)); unit != 2 || step != i/4 || row != i%4 {
			t.Errorf("record %d is said to be read by unit %d, step %d, as row %d", record, unit, step, row)
		}
	}
	if p.Before(r, 3) != p.Start || p.End(r) != canon.Root(r.Checkpoints[1:]) {
		t.Error("a segment of a batch starts from what another gave")
	}
	bare, all := l.Units[2].Split(p)
	if !bare.Receipt.OnlyEnd() || p.End(bare.Receipt) != p.End(r) || !slices.Equal(all, r.Checkpoints) {
		t.Errorf("in parts the unit ends in %v", p.End(bare.Receipt))
	}
}

// Custodians of a batch are asked for results and for the records, which are its start state.
func TestQuestionsAboutABatch(t *testing.T) {
	w := batchWorld(t)
	w.compute(0, "p0", "")
	r := w.lease.Units[0].Receipt
	seen := map[int]bool{}
	for i := range 200 {
		seed := canon.Sum("seed", []byte{byte(i)})
		q := Question{Custodian: "nobody", Unit: OfFiles, Due: 1, Seed: seed}
		if s, _ := w.lease.Sample(&q); s.State != 0 || s.Root != r.Start {
			t.Fatalf("of the files %+v is asked for", s)
		}
		s := proof.SampleStates(seed, r.Checkpoints, w.lease.Order.Problem.Data)
		if s.State < 0 || s.Root != r.Checkpoints[s.State] {
			t.Fatalf("of a unit %+v is asked for", s)
		}
		seen[s.State] = true
	}
	if len(seen) != 5 {
		t.Errorf("checkpoints %v are asked for, of five", seen)
	}
}

// Forced attempts work as in training; before each result stands the start state.
func TestForcedAttemptOfABatch(t *testing.T) {
	w := forcedWorldOf(t, func(m *Match) {
		o := &m.Order
		conditions := o.Conditions
		*o = batchOrder()
		o.Conditions = conditions
	})
	auditor := w.present(0, "p0")
	u := w.lease.Units[0]
	truth := func(before canon.Hash) (out []proof.Outcome) {
		for _, c := range u.Receipt.Checkpoints[1:] {
			out = append(out, proof.Outcome{Before: before, End: canon.Sum("truth", c[:])})
		}
		return out
	}
	segments, err := w.lease.audited(&u, []byte(auditor), nil)
	if err != nil {
		t.Fatal(err)
	}
	var outcomes []proof.Outcome
	for _, s := range segments {
		outcomes = append(outcomes, truth(u.Receipt.Start)[s])
	}
	w.do(Report{By: auditor, Unit: 0, Output: []byte(auditor), Digest: proof.Digest(auditor, u.Receipt.ID(), outcomes)})
	w.pass(20)
	e := ProveDraw{By: "p0", Unit: 0, Output: forcedDraw(true), Truth: truth(u.Receipt.Checkpoints[1])}
	if err := w.try(e); err == nil || !strings.Contains(err.Error(), "one step") {
		t.Fatalf("a result was shown to follow from another: %v", err)
	}
	e.Truth = truth(u.Receipt.Start)
	w.do(e)
	f := w.lease.Shown(0, 0)
	if a := &f.Unit.Audits[0]; !f.Right(a) {
		t.Error("a diligent auditor is not right")
	}
	s, err := w.lease.Subject(TruthTarget(0, 2), 0)
	if err != nil || !s.Claim.Independent || s.Claim.Batch.First != 2 || s.Claim.Segments() != 1 {
		t.Errorf("the truth of segment 2 claims %+v, %v", s.Claim, err)
	}
}

func TestOrdersOfABatchAreRefused(t *testing.T) {
	h := canon.Sum("x")
	for want, bend := range map[string]func(*Order){
		"not known":                 func(o *Order) { o.Problem.Kind = "mining" },
		"no merge":                  func(o *Order) { o.Problem.Merge = h },
		"training records":          func(o *Order) { o.Problem.Data = h },
		"parent":                    func(o *Order) { o.Problem.Parent.Order = h },
		"parent or seed":            func(o *Order) { o.Problem.Parent.Final = h },
		"seed":                      func(o *Order) { o.Problem.Seed = 1 },
		"want 1 and 1":              func(o *Order) { o.Problem.Interval = 2 },
		"a batch of 2 rounds":       func(o *Order) { o.Problem.Rounds = 2 },
		"0 records":                 func(o *Order) { o.Problem.Records = 0 },
		"take 13 steps, the units":  func(o *Order) { o.Problem.Records = 49 },
		"the last of 3 units has":   func(o *Order) { o.Problem.Records = 32 },
		"lacks the root":            func(o *Order) { o.Problem.Start = canon.Hash{} },
		`a batch order is a "data"`: func(o *Order) { o.Problem.Files = append(o.Problem.Files, File{RoleData, "cid", 1}) },
		"independent steps update":  func(o *Order) { o.Conditions.TopSegments = 1 },
		"segments of a unit":        func(o *Order) { o.Problem.Steps, o.Problem.Records = 300, 3600 },
		"batch is 0, must be":       func(o *Order) { o.Problem.Batch = 0 },
		"shards is 0, must be":      func(o *Order) { o.Problem.Shards = 0 },
		"records, want 1 to":        func(o *Order) { o.Problem.Records = 1<<40 + 1 },
		"the cost of a step is":     func(o *Order) { o.Problem.StepFLOPs = 0 },
	} {
		o := batchOrder()
		if err := o.Check(); err != nil {
			t.Fatal(err)
		}
		bend(&o)
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error about %q, got %v", want, err)
		}
	}
}

// auctioned is a batch order that takes part in auctions.
func auctioned() Order {
	o := batchOrder()
	o.Conditions.Auction, o.Conditions.MinProviders = true, 1
	return o
}

func TestAuctionsTakeSomeOrdersAlone(t *testing.T) {
	tier := auctioned()
	tier.Conditions.Needs = match.Needs{Tier: "B"}
	if err := tier.Check(); err != nil {
		t.Error(err)
	}
	for says, bend := range map[string]func(*Order){
		"sells capacity to batches": func(o *Order) { p := testOrder().Problem; o.Problem = p },
		"replicas take a standing":  func(o *Order) { o.Conditions.Replicas, o.Conditions.Auditors, o.Conditions.AuditSegments = 2, 0, 0 },
		"a tier and for nothing":    func(o *Order) { o.Conditions.Needs = match.Needs{Memory: 1} },
		"2 providers at least":      func(o *Order) { o.Conditions.MinProviders = 2 },
	} {
		o := auctioned()
		if bend(&o); o.Check() == nil || !strings.Contains(o.Check().Error(), says) {
			t.Errorf("want %q: %v", says, o.Check())
		}
	}
}
