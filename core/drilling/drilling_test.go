package drilling_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/core/drilling"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/power"
)

// order is a task of 4 units of 20 runs, each computed twice, which comes to 2·4·20 ut.
func order() *job.Order {
	return &job.Order{
		Consumer:   "partner",
		Problem:    job.Problem{Kind: job.Batch, Rounds: 1, Shards: 4, Steps: 20, Interval: 1, StepFLOPs: power.UT},
		Conditions: job.Conditions{Replicas: 2, Credit: true},
	}
}

func project() drilling.Project {
	return drilling.Project{Status: drilling.Admitted, Partner: "partner", Budget: 160_000_000}
}

func TestWhatAProjectTakes(t *testing.T) {
	rules := drilling.Rules{FloorBps: 500}
	audited := func(o *job.Order, segments, floor int) {
		o.Conditions.Replicas, o.Conditions.Auditors, o.Conditions.AuditSegments, o.Conditions.AuditFloor = 0, 1, segments, floor
	}
	for name, c := range map[string]struct {
		bend func(p *drilling.Project, o *job.Order)
		want uint64 // millionths of a ut
		why  string // it is refused
	}{
		"replicas":               {func(*drilling.Project, *job.Order) {}, 160_000_000, ""},
		"audits that fall to 5":  {func(_ *drilling.Project, o *job.Order) { audited(o, 10, 1) }, 80_000_000, ""},
		"a broken ut":            {func(_ *drilling.Project, o *job.Order) { o.Problem.StepFLOPs = 1 }, 1, ""},
		"audits of too few":      {func(_ *drilling.Project, o *job.Order) { o.Problem.Steps = 21; audited(o, 10, 1) }, 0, "checked"},
		"unchecked":              {func(_ *drilling.Project, o *job.Order) { o.Conditions.Replicas = 0 }, 0, "checked"},
		"a stranger's":           {func(_ *drilling.Project, o *job.Order) { o.Consumer = "other" }, 0, "published by partner"},
		"training":               {func(_ *drilling.Project, o *job.Order) { o.Problem.Kind = job.Training }, 0, "batch"},
		"without credit":         {func(_ *drilling.Project, o *job.Order) { o.Conditions.Credit = false }, 0, "credit"},
		"before it is admitted":  {func(p *drilling.Project, _ *job.Order) { p.Status = drilling.Proposed }, 0, "proposed"},
		"after its end":          {func(p *drilling.Project, _ *job.Order) { p.Status = drilling.Ended }, 0, "ended"},
		"more than the budget":   {func(p *drilling.Project, _ *job.Order) { p.Budget-- }, 0, "left of its budget"},
		"beside what is pending": {func(p *drilling.Project, _ *job.Order) { p.Pending = 1 }, 0, "left of its budget"},
		"after what is drilled":  {func(p *drilling.Project, _ *job.Order) { p.Drilled = 1 }, 0, "left of its budget"},
		"more than can be counted": {func(_ *drilling.Project, o *job.Order) {
			o.Problem.StepFLOPs, o.Problem.Shards = 1<<59, 1<<12
		}, 0, "counted"},
	} {
		p, o := project(), order()
		c.bend(&p, o)
		before := p
		got, err := p.Take(o, rules)
		switch {
		case c.why == "" && (err != nil || got != c.want || p.Pending != before.Pending+c.want):
			t.Errorf("%s: %d pending, %v", name, got, err)
		case c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why) || p != before):
			t.Errorf("%s: %v, and %+v", name, err, p)
		}
	}
}

func TestStationsOfAProject(t *testing.T) {
	p := drilling.Project{Status: drilling.Proposed, Partner: "partner", Budget: 1}
	if err := p.Admit(); err != nil || p.Status != drilling.Admitted {
		t.Fatalf("%v: %v", p.Status, err)
	}
	if p.Admit() == nil {
		t.Error("it is admitted twice")
	}
	if err := p.End(); err != nil || p.Status != drilling.Ended {
		t.Fatalf("%v: %v", p.Status, err)
	}
	if p.End() == nil || p.Admit() == nil {
		t.Error("it goes on after its end")
	}
}

// Whatever comes and goes, in whatever order, no more is credited than the budget, and what was refused changes nothing.
func TestBudgetHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := project()
		p.Budget = rapid.Uint64Range(1, 2_000_000_000).Draw(t, "budget")
		var open []uint64
		drilled := uint64(0)
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			before := p
			if len(open) == 0 || rapid.Bool().Draw(t, "publish") {
				o := order()
				o.Problem.StepFLOPs = rapid.Uint64Range(1, 2*power.UT).Draw(t, "flops")
				most, err := p.Take(o, drilling.Rules{})
				if err == nil {
					open = append(open, most)
				} else if p != before {
					t.Fatalf("refused, and %+v became %+v", before, p)
				}
			} else {
				i := rapid.IntRange(0, len(open)-1).Draw(t, "task")
				done := rapid.Uint64Range(0, open[i]).Draw(t, "done")
				if err := p.Leave(open[i]); err != nil {
					t.Fatal(err)
				}
				if err := p.Credit(done); err != nil {
					t.Fatalf("%d of a task of %d: %v", done, open[i], err)
				}
				open, drilled = append(open[:i], open[i+1:]...), drilled+done
			}
			if err := p.Check(); err != nil || p.Drilled != drilled || p.Drilled > p.Budget {
				t.Fatalf("%+v, %d drilled: %v", p, drilled, err)
			}
		}
		if p.Credit(p.Left()+1) == nil || p.Leave(p.Pending+1) == nil {
			t.Error("more than there is")
		}
	})
}

func TestCheckRefuses(t *testing.T) {
	for name, p := range map[string]drilling.Project{
		"no status":               {},
		"an unknown status":       {Status: drilling.Ended + 1},
		"more than the budget":    {Status: drilling.Admitted, Budget: 3, Pending: 2, Drilled: 2},
		"a sum that overflows":    {Status: drilling.Admitted, Budget: 3, Pending: 1 << 63, Drilled: 1 << 63},
		"a budget without bounds": {Status: drilling.Admitted, Budget: drilling.MaxBudget*1_000_000 + 1},
		"tasks before admission":  {Status: drilling.Proposed, Budget: 3, Pending: 1},
	} {
		if p.Check() == nil {
			t.Errorf("%s is in order", name)
		}
	}
	if s := drilling.Status(9).String(); s != "ended" {
		t.Errorf("status 9 is %s", s)
	}
}
