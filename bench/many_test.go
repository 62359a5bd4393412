package bench

import "testing"

// What tally bench chain measures happens: orders are matched, and fall due.
func TestManyAreMatchedAndFallDue(t *testing.T) {
	c, err := newMany(1000)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.lease(t.Context(), 128, t.Logf); err != nil {
		t.Fatal(err)
	}
	if d, err := c.due(t.Context(), 128); err != nil || len(d.leases) > 64 || d.hundred[0] <= 0 {
		t.Fatalf("%+v fell due, %v", d, err)
	}
}
