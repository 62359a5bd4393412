package job

import "fmt"

// Form is how a consumer has the units of an order checked. What each form comes to are
// numbers of the Conditions, and they alone are stored.
type Form string

// The forms of assurance.
const (
	Audited    Form = "audit"     // drawn auditors execute drawn segments again
	Watched    Form = "watched"   // one drawn auditor executes everything again
	Replicated Form = "replicas"  // several drawn providers compute each unit beside one another
	Unchecked  Form = "unchecked" // nobody is drawn; challengers look if they choose to
)

// Form returns the form of assurance that the conditions come to, for units of a number of
// segments. One drawn auditor of everything watches, however that was asked for.
func (c *Conditions) Form(segments int) Form {
	switch {
	case c.Replicas > 0:
		return Replicated
	case c.Auditors == 0:
		return Unchecked
	case c.Auditors == 1 && c.AuditSegments == segments && c.AuditFloor == 0 && c.TopSegments == 0:
		return Watched
	}
	return Audited
}

// Watch asks for one drawn auditor that executes all segments of every unit again, whoever
// computed it.
func (c *Conditions) Watch(segments int) {
	c.Auditors, c.AuditSegments, c.AuditFloor, c.TopSegments = 1, segments, 0, 0
}

// Copies returns how many providers compute each unit.
func (c *Conditions) Copies() int { return max(c.Replicas, 1) }

// checkReplicas returns an error unless the number of replicas is none or makes sense. They are
// compared with one another, so that nobody is drawn to audit them.
func (c *Conditions) checkReplicas() error {
	switch {
	case c.Replicas == 0:
		return nil
	case c.Replicas < least || c.Replicas > MaxReplicas:
		return fmt.Errorf("%d replicas of each unit, want %d to %d, or 0 where one provider computes it", c.Replicas, least, MaxReplicas)
	case c.Auditors > 0:
		return fmt.Errorf("%d replicas and %d auditors of each unit: have it checked in one form", c.Replicas, c.Auditors)
	}
	return nil
}
