package adversary

import "testing"

// Where several compute each unit, honest people lose nothing either: whatever some of the
// replicas say, or leave out, and whoever loses a dispute on purpose.
func TestHonestReplicasLoseNothing(t *testing.T) {
	w := NewWorld(t, Plain)
	forges := func(state int) Habit { return Habit{Forge: state} }
	skips := func(msg ...string) Habit { return Habit{Skip: msg} }
	for name, hostile := range map[string]map[string]Habit{
		"nobody":                     {},
		"a liar":                     {"p0": {Lie: true}},
		"a forged checkpoint":        {"p1": forges(1)},
		"a forged end":               {"p1": forges(2)},
		"a forged state in between":  {"q0": forges(3)},
		"a pair that shares its lie": {"p0": {Lie: true}, "q0": {Lie: true}},
		"all but one lie":            {"p0": {Lie: true}, "p1": {Lie: true}, "q0": {Lie: true}, "q1": {Lie: true}},
		"all lie":                    {"p0": {Lie: true}, "p1": {Lie: true}, "p2": {Lie: true}, "q0": {Lie: true}, "q1": {Lie: true}},
		"one lies, one loses":        {"p0": {Lie: true}, "p1": skips("dispute.MsgMove", "dispute.MsgOpen")},
		"one stalls":                 {"p2": skips("work.MsgReveal")},
		"one is silent":              {"q1": skips("*")},
		"one withholds":              {"p0": {Withhold: true}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{2, 3, 4} {
				const ahead = 2 // rounds, and bytes of names
				f, sent := w.Play(Script{World: Plain, Orders: []string{"buyer"}, Pick: plainOrders*(n-1) + ahead*(n%2), Hostile: hostile, Blocks: []Block{{Wait: 2000, Times: 100}}})
				if f != nil {
					t.Errorf("%d replicas: %v", n, f)
				}
				if sent < 30 {
					t.Errorf("%d replicas: only %d messages", n, sent)
				}
			}
		})
	}
	t.Logf("%+v", w.reached)
}
