package town

import "testing"

// What tally bench chain measures of orders happens: a town brings some to their settlement, and then
// they are pruned.
func TestTownSettles(t *testing.T) {
	c, err := New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, shards := range []int{1, 8} {
		if _, err := c.Settle(t.Context(), 3, shards); err != nil {
			t.Fatal(err)
		}
	}
	before, err := c.Size()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Pass(t.Context(), 2*Retention); err != nil {
		t.Fatal(err)
	}
	if after, err := c.Size(); err != nil || after >= before {
		t.Errorf("%d bytes before they are pruned, %d after (%v)", before, after, err)
	}
}

// What it measures of sessions happens: each is opened and settled, and then forgotten.
func TestTownHoldsSessions(t *testing.T) {
	c, err := New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const many = crowd + 1
	spent, err := c.Sessions(t.Context(), many)
	if err != nil || spent.Messages != 2*many {
		t.Fatalf("%d messages, %v", spent.Messages, err)
	}
}
