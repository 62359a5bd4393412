package job

import (
	"strings"
	"testing"

	"github.com/tally-network/tally/core/canon"
)

// What an order may say is bounded; the refusal names what is wrong.
func TestOrderCheck(t *testing.T) {
	o := testOrder()
	if err := o.Check(); err != nil {
		t.Fatal(err)
	}
	for want, bend := range map[string]func(*Order){
		"contact":           func(o *Order) { o.Contact.Key = nil },
		"kind":              func(o *Order) { o.Problem.Kind = "mining" },
		"profile":           func(o *Order) { o.Problem.Profile = "fp8" },
		"root":              func(o *Order) { o.Problem.Data = canon.Hash{} },
		"rounds":            func(o *Order) { o.Problem.Rounds = 0 },
		"units":             func(o *Order) { o.Problem.Rounds, o.Problem.Shards = 100, 100 },
		"steps":             func(o *Order) { o.Problem.Steps = 0 },
		"interval":          func(o *Order) { o.Problem.Interval = 7 },
		"records":           func(o *Order) { o.Problem.Records = 1 },
		"cost":              func(o *Order) { o.Problem.StepFLOPs = 1 << 62 },
		"maximum price":     func(o *Order) { o.Conditions.MaxPrice = 0 },
		"providers":         func(o *Order) { o.Conditions.MinProviders = 0 },
		"custodians":        func(o *Order) { o.Conditions.Custodians = 0 },
		"audited segments":  func(o *Order) { o.Conditions.AuditSegments = 4 },
		"both or neither":   func(o *Order) { o.Conditions.Auditors = 0 },
		"challenge window":  func(o *Order) { o.Conditions.Window = 0 },
		"segments of a uni": func(o *Order) { o.Problem.Steps, o.Problem.Interval = 1000, 1 },
		"floor":             func(o *Order) { o.Conditions.AuditFloor = 2 },
		"largest updates":   func(o *Order) { o.Conditions.TopSegments = 3 },
		"files":             func(o *Order) { o.Problem.Files = make([]File, 17) },
		"the record of 4096 units with 256 segments, 16 auditors and 16 custodians may have 99221504 bytes, the limit is 50331648": func(o *Order) {
			o.Problem.Rounds, o.Problem.Shards, o.Problem.Records = 64, 64, 64
			o.Problem.Steps, o.Problem.Interval = 256, 1
			o.Conditions.Auditors, o.Conditions.AuditSegments, o.Conditions.Custodians = 16, 170, 16
		},
	} {
		o := testOrder()
		bend(&o)
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error about %q, got %v", want, err)
		}
	}
}
