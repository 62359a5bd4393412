package job

import (
	"strings"
	"testing"

	"github.com/tally-network/tally/core/dispute"
)

// timely is an order that leaves exactly as much time as the rules want: a unit of
// 3·10¹⁰ FLOP takes 3 s, its three checkpoints of 100,000 bytes 0.3 s, blocks 10 s.
func timely() Match {
	m := testMatch()
	m.Params = DefaultParams.WithoutForced()
	m.Order.Problem.StateBytes = 100_000
	c := &m.Order.Conditions
	c.UnitTimeout, c.UnitWindow, c.Window = 13_300, 10_000, 13_300
	return m
}

// A consumer that set a timeout of 1 ms had honest providers slashed at no cost.
func TestOrdersLeaveEnoughTime(t *testing.T) {
	m := timely()
	if _, _, err := NewLease(m, 0); err != nil {
		t.Fatal(err)
	}
	for why, bend := range map[string]func(o *Order){
		"the unit timeout must be at least 10000 ms for blocks + 30000000000 FLOP at 10000000000 FLOP/s + 300000 bytes at 1000000 B/s = 13300 ms > 13299 ms": func(o *Order) { o.Conditions.UnitTimeout-- },
		"= 13300 ms > 1 ms": func(o *Order) { o.Conditions.UnitTimeout = 1 },
		"the unit window must be at least 10000 ms for blocks = 10000 ms > 9999 ms": func(o *Order) { o.Conditions.UnitWindow-- },
		"the challenge window must be at least":                                     func(o *Order) { o.Conditions.Window-- },
		"= 13400 ms > 13300 ms":                                                     func(o *Order) { o.Problem.StateBytes *= 4; o.Problem.StateBytes /= 3 },
		"= 16300 ms > 13300 ms":                                                     func(o *Order) { o.Problem.StepFLOPs *= 2 },
		" + 250 ms to fetch what the unit reads = 13550 ms > 13300 ms": func(o *Order) { // records by shard: one of two
			o.Problem.Shards, o.Problem.Files = 2, []File{{Role: "model", Size: 1_500_000}, {Role: "crown", Size: 9}, {Role: "data", Size: 499_999}}
		},
		" + 2000 ms to fetch what the unit reads = 15300 ms > 13300 ms": func(o *Order) {
			o.Conditions.Auditors, o.Conditions.AuditSegments = 0, 0
			o.Conditions.Replicas, o.Problem.Files = 2, []File{{Role: "model", Size: 1_500_000}, {Role: "data", Size: 500_000}}
		},
	} {
		m := timely()
		bend(&m.Order)
		if _, _, err := NewLease(m, 0); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("got %v, want %q", err, why)
		}
		if err := m.Params.Suits(&m.Order); err == nil {
			t.Errorf("%q suits the rules", why)
		}
	}
}

// A unit of 192 s with a clock of 130 s lost to a single false dispute. What cannot be
// replayed in time is refused, with what to change.
func TestSegmentsFitTheClock(t *testing.T) {
	p, r := DefaultParams, dispute.DefaultRules // 600 s / (2 · 4) at 10¹⁰ FLOP/s: 7.5·10¹¹ FLOP
	order := func(step, merge uint64) *Order {
		m := testMatch()
		m.Order.Problem.Steps, m.Order.Problem.Interval = 16, 8
		m.Order.Problem.StepFLOPs, m.Order.Problem.MergeFLOPs = step, merge
		return &m.Order
	}
	for why, o := range map[string]*Order{
		"": order(93_750_000_000, 750_000_000_000),
		"one segment of 8 steps could not be answered in time: 2 · 4 games at once · 1600000000000 FLOP at 10000000000 FLOP/s = 1280000 ms > answer_ms = 600000; put checkpoints at most 3 steps apart": order(200_000_000_000, 1),
		"at most 7 steps apart": order(93_750_000_001, 1),
		"one step could not be answered in time: 2 · 4 games at once · 750000000001 FLOP": order(750_000_000_001, 1),
		"use fewer shards": order(1, 750_000_000_001),
	} {
		err := p.Replayable(o, r)
		if why == "" && err != nil || why != "" && (err == nil || !strings.Contains(err.Error(), why)) {
			t.Errorf("got %v, want %q", err, why)
		}
		if o.Problem.Interval = p.Segment(o.Problem.StepFLOPs, r); strings.Contains(why, "apart") && p.Replayable(o, r) != nil {
			t.Errorf("%d steps do not fit: %v", o.Problem.Interval, p.Replayable(o, r))
		}
	}
	quick := p.Quick()
	if err := quick.Replayable(order(1<<40, 1<<40), r); err != nil || quick.Segment(1, r) != dispute.MaxSteps {
		t.Errorf("%v, %d", err, quick.Segment(1, r))
	}
}

// A receipt of nothing, of an order with a timeout of thirty days, locked the bonds of all
// auditors for as long. Custodians have the time that fetching takes.
func TestReceiptLocksNobodyForLong(t *testing.T) {
	m := timely()
	m.Order.Conditions.UnitTimeout, m.Order.Conditions.Window, m.Order.Problem.StateBytes = maxWindow, maxWindow, 1_000_000
	m.Params.AnswerTime = 600_000
	w := newWorldOf(t, m)
	if err := w.assign(0, "p0"); err != nil {
		t.Fatal(err)
	}
	w.submit(w.receipt(0, ""))
	w.pass(1)
	want := 2*m.Params.AnswerTime + int64(m.Order.Conditions.Custodians)*3000 // three checkpoints of 10⁶ bytes at 10⁶ B/s
	want += perTransaction                                                    // for one unit, which every custodian has
	if got := w.lease.Units[0].Due - w.now; got > want || got < want-1000 {
		t.Fatalf("custodians have %d ms, want %d", got, want)
	}
	w.pass(want + 1)
	if u := w.lease.Units[0]; u.Status != Open || u.Attempt != 1 {
		t.Errorf("the unit is %v", u.Status)
	}
}

// What is under way may be received at once, and a block holds one attestation of a
// custodian. Units that nobody has begun give no time: a lone receipt would lock bonds longer.
func TestCustodiansHaveTimeForARound(t *testing.T) {
	m := timely()
	m.Order.Conditions.UnitTimeout, m.Order.Conditions.Window, m.Order.Problem.StateBytes = maxWindow, maxWindow, 1
	m.Params.AnswerTime = 600_000
	l := newWorldOf(t, m).lease
	l.Order.Conditions.Custodians, l.Auditors = 3, l.Auditors[:3]
	for under, want := range map[int]int64{1: 2000, 100: 200_000, 4096: 8_192_000} {
		l.Count.Status[Received] = under
		if got := l.attestTime() - 2*m.Params.AnswerTime; got/1000*1000 != want {
			t.Errorf("with %d units under way custodians have %d ms more, want %d", under, got, want)
		}
	}
}
