package probe

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
)

// order returns the probe of a seed.
func order(seed canon.Hash, runs, steps int) job.Order {
	p, err := Problem(seed, runs, steps)
	if err != nil {
		panic(err)
	}
	p.Files = []job.File{{Role: "model", CID: "somewhere"}}
	return job.Order{Problem: p, Conditions: job.Conditions{Auditors: 1, AuditSegments: Audited(steps)}}
}

func TestOnlyTheBatchOfASeedIsItsProbe(t *testing.T) {
	seed := Seed(canon.Hash{1}, "tally1")
	for runs := Fewest; runs <= 1<<10; runs *= 2 {
		if o := order(seed, runs, 8); !ForSeed(&o, seed) {
			t.Fatalf("the probe of %d runs is not known", runs)
		}
	}
	for name, bend := range map[string]func(*job.Order){
		"another seed's records":            func(o *job.Order) { o.Problem.Start, _ = Records(Seed(canon.Hash{1}, "tally2"), 64).Root() },
		"another program":                   func(o *job.Order) { o.Problem.Step[0]++ },
		"a program of more runs":            func(o *job.Order) { o.Problem.Step, _ = canon.ParseHash(programs[3]) },
		"units with steps without a record": func(o *job.Order) { o.Problem.Shards, o.Problem.Steps = 1, 256 },
		"fewer units":                       func(o *job.Order) { o.Problem.Shards-- },
		"training":                          func(o *job.Order) { o.Problem.Kind = job.Training },
		"no records":                        func(o *job.Order) { o.Problem.Records = 0 },
		"records of no power of two":        func(o *job.Order) { o.Problem.Records = 63 },
		"more operations than it has":       func(o *job.Order) { o.Problem.StepFLOPs++ },
		"two records a run":                 func(o *job.Order) { o.Problem.Batch = 2 },
		"no auditors":                       func(o *job.Order) { o.Conditions.Auditors = 0 },
		"too few segments audited":          func(o *job.Order) { o.Conditions.AuditSegments-- },
		"fewer for a long record":           func(o *job.Order) { o.Conditions.AuditFloor = 1 },
	} {
		o := order(seed, 64, 8)
		if bend(&o); ForSeed(&o, seed) {
			t.Errorf("%s passes for a probe", name)
		}
	}
	for _, x := range [][2]int{{8, 8}, {2 * MostRuns, 8}, {96, 8}, {64, 0}, {64, 65}, {64, 3}, {0, 1}, {-1, 1}} {
		if _, err := Problem(seed, x[0], x[1]); err == nil {
			t.Errorf("%d runs in units of %d", x[0], x[1])
		}
	}
}

// Every number of a record has 24 bits and a place of its own in the stream; fewer runs are the first of more.
func TestRecords(t *testing.T) {
	few, many := tensor.Of[int32](Records(canon.Hash{3}, 16).Tensors[0]), tensor.Of[int32](Records(canon.Hash{3}, 1024).Tensors[0])
	low, high := many[0], many[0]
	for i, v := range many {
		if i < len(few) && few[i] != v {
			t.Fatalf("number %d is %d, and of more runs %d", i, few[i], v)
		}
		low, high = min(low, v), max(high, v)
	}
	if low < -1<<23 || high >= 1<<23 || low > -1<<22 || high < 1<<22 {
		t.Errorf("numbers from %d to %d", low, high)
	}
}

// Work is spread over a minute at least, and no wait makes anybody faster.
func TestSpeed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flops, ms := rapid.Uint64().Draw(t, "flops"), rapid.Uint64().Draw(t, "ms")
		if more := rapid.Uint64Min(ms).Draw(t, "more"); Speed(flops, more) > Speed(flops, ms) {
			t.Fatalf("%d FLOP are faster in %d ms than in %d", flops, more, ms)
		}
		if Speed(flops, 0) != Speed(flops, LeastMs) {
			t.Fatal("less than a minute counts")
		}
	})
	for _, c := range []struct {
		speed, ms uint64
		runs      int
	}{{0, 60_000, Fewest}, {100e9, 60_000, 128}, {20e12, 60_000, 32768}, {1e15, 1 << 60, MostRuns}} {
		if got := Runs(c.speed, c.ms); got != c.runs {
			t.Errorf("%d FLOP/s for %d ms: %d runs, want %d", c.speed, c.ms, got, c.runs)
		}
	}
}
