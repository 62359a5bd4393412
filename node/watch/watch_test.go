package watch

import (
	"fmt"
	"testing"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/role"
)

// lease returns a lease of three rounds of two units, two of them merged, and
// the first unit of the third counted.
func lease() *job.Lease {
	l := &job.Lease{Phase: job.Active, Round: 2, Units: make([]job.Unit, 6), Merges: make([]job.Merge, 3)}
	l.Order.Problem.Rounds, l.Order.Problem.Shards = 3, 2
	l.Order.Problem.Merge = canon.Sum("merge")
	for i := range 5 {
		l.Units[i].Status, l.Units[i].Receipt = job.Counted, receipt(i, 0)
	}
	l.Units[5].Status, l.Units[5].Receipt = job.Received, receipt(5, 0) // nothing can be disputed yet
	for r := range 2 {
		l.Merges[r].Root = canon.Sum("root", []byte{byte(r)})
	}
	return l
}

func receipt(unit, attempt int) *job.Receipt {
	return &job.Receipt{Unit: unit, Attempt: attempt, Checkpoints: []canon.Hash{{}, {1}}}
}

func watching(t *testing.T, dir string) *challenger {
	t.Helper()
	return &challenger{env: role.New(role.Parts{Dir: dir, Account: &client.Account{Address: "challenger"}})}
}

// check notes everything that is next, and returns it in order.
func check(t *testing.T, c *challenger, l *job.Lease) (order []string) {
	t.Helper()
	for range 100 {
		target, name, ok := c.next(l)
		if !ok {
			return order
		}
		kind := "unit"
		if target.Kind() == job.AboutMerge {
			kind = "merge"
		}
		order = append(order, fmt.Sprint(kind, " ", target.Index()))
		if err := c.note(l, name); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatalf("it does not come to an end: %v", order)
	return nil
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("checked %v, want %v", got, want)
	}
}

func TestOldestWorkIsCheckedFirstAndOnce(t *testing.T) {
	dir := t.TempDir()
	l := lease()
	expect(t, check(t, watching(t, dir), l), "unit 0", "unit 1", "merge 0", "unit 2", "unit 3", "merge 1", "unit 4")

	c := watching(t, dir) // it begins again
	expect(t, check(t, c, l))

	// A unit that was done again is other work, and so is the merge of it.
	l.Units[1].Attempt, l.Units[1].Receipt = 1, receipt(1, 1)
	l.Merges[0].Attempt = 1
	expect(t, check(t, c, l), "unit 1", "merge 0")

	// Another order is another thing.
	other := lease()
	other.Order.Nonce = 1
	if len(check(t, c, other)) != 7 {
		t.Error("work of another order counts as checked")
	}
}

// Somebody else's dispute about a piece of work decides about it.
func TestDisputedWorkIsLeftAlone(t *testing.T) {
	c, l := watching(t, t.TempDir()), lease()
	l.Disputes = []job.Dispute{{Target: job.UnitTarget(0)}, {Target: job.MergeTarget(1)}}
	expect(t, check(t, c, l), "unit 1", "merge 0", "unit 2", "unit 3", "unit 4")
	l.Disputes = nil
	expect(t, check(t, c, l), "unit 0", "merge 1")
}

// A custodian was taken to keep nothing while it rightly refused: who may read where the
// checkpoints of a unit are is decided when it counts.
func TestCustodiansAreLookedAtOnceAUnitCounts(t *testing.T) {
	l := lease()
	for i := range l.Units {
		l.Units[i].Attested = []job.Attestation{{Custodian: "custodian", Done: true}, {Custodian: "silent"}, {Custodian: "convicted", Done: true, Failed: true}}
	}
	var looked []string
	for i, a := range attested(l) {
		looked = append(looked, fmt.Sprint(a.Custodian, " ", i))
	}
	expect(t, looked, "custodian 0", "custodian 1", "custodian 2", "custodian 3", "custodian 4")
}
