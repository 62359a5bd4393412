package job

import "testing"

// What an order asks for is read back as what it comes to.
func TestForm(t *testing.T) {
	for name, c := range map[string]struct {
		conditions Conditions
		segments   int
		want       Form
	}{
		"nobody":                   {Conditions{}, 4, Unchecked},
		"some segments":            {Conditions{Auditors: 1, AuditSegments: 2}, 4, Audited},
		"everything, by one":       {Conditions{Auditors: 1, AuditSegments: 4}, 4, Watched},
		"everything, by three":     {Conditions{Auditors: 3, AuditSegments: 4}, 4, Audited},
		"everything, with a floor": {Conditions{Auditors: 1, AuditSegments: 4, AuditFloor: 1}, 4, Audited},
		"everything, and the top":  {Conditions{Auditors: 1, AuditSegments: 4, TopSegments: 1}, 4, Audited},
		"the only segment":         {Conditions{Auditors: 1, AuditSegments: 1}, 1, Watched},
		"replicas":                 {Conditions{Replicas: 3}, 4, Replicated},
	} {
		if got := c.conditions.Form(c.segments); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
