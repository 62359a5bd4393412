package job

import (
	"strings"
	"testing"
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
