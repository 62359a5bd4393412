package consume

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"

	"github.com/tally-network/tally/core/job"
)

// SpecAssurance says how the units of an order are checked: in one form. Where none is given,
// it is an audit as in defaultAudit.
type SpecAssurance struct {
	Audit    *SpecAudit `json:"audit,omitempty"`
	Replicas int        `json:"replicas,omitempty"` // drawn providers that compute each unit beside one another
	Watched  bool       `json:"watched,omitempty"`  // a drawn auditor executes everything again
}

// SpecAudit says how much of each unit drawn auditors execute again.
type SpecAudit struct {
	Auditors int   `json:"auditors"`
	Segments int   `json:"segments"`        // of each unit, by each of them
	Rate     Share `json:"rate,omitempty"`  // in place of segments: a share of them
	Floor    int   `json:"floor,omitempty"` // fewest for a provider with a long record
	Top      int   `json:"top,omitempty"`   // besides: those with the largest updates
}

var defaultAudit = SpecAudit{Auditors: 1, Segments: 1}

// UnmarshalJSON reads an audit. What is not given is as in defaultAudit.
func (a *SpecAudit) UnmarshalJSON(b []byte) error {
	type fields SpecAudit // without this method
	*a = defaultAudit
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode((*fields)(a))
}

// check returns an error unless one form is asked for at most.
func (a *SpecAssurance) check() error {
	forms := 0
	for _, asked := range []bool{a.Audit != nil, a.Replicas != 0, a.Watched} {
		if asked {
			forms++
		}
	}
	if forms > 1 {
		return errors.New("conditions.assurance: write one of audit: {…}, replicas: 2 to 8 and watched: true")
	}
	return nil
}

// enter sets what an assurance comes to in the conditions of units of so many segments.
func (a *SpecAssurance) enter(c *job.Conditions, segments int) {
	switch {
	case a.Watched:
		c.Watch(segments)
		return
	case a.Replicas != 0:
		c.Replicas = a.Replicas
		return
	}
	audit := defaultAudit
	if a.Audit != nil {
		audit = *a.Audit
	}
	if audit.Rate > 0 {
		audit.Segments = int(math.Ceil(float64(audit.Rate) * float64(segments)))
	}
	c.Auditors, c.AuditSegments, c.AuditFloor, c.TopSegments = audit.Auditors, audit.Segments, audit.Floor, audit.Top
}

// Assurances returns conditions with the assurances that people compare: the default audit, watched, and
// two or three replicas, for units of so many segments. All else stays as it is.
func Assurances(c job.Conditions, segments int) (out []job.Conditions) {
	c.Replicas, c.Auditors, c.AuditSegments, c.AuditFloor, c.TopSegments = 0, 0, 0, 0, 0
	for _, a := range []SpecAssurance{{}, {Watched: true}, {Replicas: 2}, {Replicas: 3}} {
		next := c
		a.enter(&next, segments)
		out = append(out, next)
	}
	return out
}
