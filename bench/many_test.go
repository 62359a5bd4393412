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

// What tally bench chain measures of orders happens: a town brings some to their settlement, and then
// they are pruned.
func TestTownSettles(t *testing.T) {
	c, err := newTown(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, shards := range []int{1, 8} {
		if _, err := c.settle(t.Context(), 3, shards); err != nil {
			t.Fatal(err)
		}
	}
	before, err := c.size()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.pruneAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after, err := c.size(); err != nil || after >= before {
		t.Errorf("%d bytes before they are pruned, %d after (%v)", before, after, err)
	}
}
