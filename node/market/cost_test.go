package market

import (
	"testing"

	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/node/consume"
)

// The assurances that people compare are told apart by their names, and change nothing else.
func TestAssurancesHaveNames(t *testing.T) {
	const segments = 4
	own := job.Conditions{MaxPrice: 7, Custodians: 3, Auditors: 2, AuditSegments: 3, AuditFloor: 1, TopSegments: 1}
	var names []string
	for _, c := range consume.Assurances(own, segments) {
		names = append(names, assuranceName(c.Form(segments), &c))
		c.Auditors, c.AuditSegments, c.AuditFloor, c.TopSegments, c.Replicas = own.Auditors, own.AuditSegments, own.AuditFloor, own.TopSegments, 0
		if c.MaxPrice != own.MaxPrice || c.Custodians != own.Custodians {
			t.Errorf("%s changed %+v", names[len(names)-1], c)
		}
	}
	for i, want := range []string{"audit", "watched", "replicas: 2", "replicas: 3"} {
		if names[i] != want {
			t.Errorf("%q, want %q", names[i], want)
		}
	}
}
