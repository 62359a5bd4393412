package job

// Form is how a consumer has the units of an order checked. What each form comes to are
// numbers of the Conditions: nothing else asks for it.
type Form string

// The forms of assurance.
const (
	Audited   Form = "audit"     // drawn auditors execute drawn segments again
	Watched   Form = "watched"   // one drawn auditor executes everything again
	Unchecked Form = "unchecked" // nobody is drawn: only who chooses to looks
)

// Form returns the form of assurance that the conditions come to, for units of so many
// segments.
func (c *Conditions) Form(segments int) Form {
	switch {
	case c.Auditors == 0:
		return Unchecked
	case c.AuditSegments == segments && c.AuditFloor == 0:
		return Watched
	}
	return Audited
}

// Watch asks for one drawn auditor that executes all segments of every unit again, whoever
// computed it.
func (c *Conditions) Watch(segments int) {
	c.Auditors, c.AuditSegments, c.AuditFloor, c.TopSegments = 1, segments, 0, 0
}
