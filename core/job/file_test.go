package job

import (
	"strings"
	"testing"
)

func TestFilesHaveKnownRolesEachOnce(t *testing.T) {
	for why, files := range map[string][]File{
		`is a "junk"`:                    {{"model", "cid", 10}, {"junk", "cid", 1 << 40}},
		"two files are the order's data": {{"data", "cid", 10}, {"data", "cid", 11}},
		"the model has":                  {{"model", "cid", maxFile + 1}},
	} {
		o := testOrder()
		o.Problem.Files = files
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("got %v, want %q", err, why)
		}
	}
}

// What is kept is paid for by bytes and time: an order of a few utally named a file of
// any size, and all custodians fetched it.
func TestBytesArePaidFor(t *testing.T) {
	keep := func(bend func(o *Order)) uint64 {
		m := testMatch()
		m.Order.Conditions.MaxPrice = 1 << 40
		bend(&m.Order)
		l, _, err := NewLease(m, 0)
		if err != nil {
			t.Fatal(err)
		}
		return l.Quote.Keep
	}
	small := keep(func(*Order) {})
	units, rate := uint64(6), DefaultParams.KeepGB
	for name, c := range map[string]struct {
		bend func(o *Order)
		more uint64
	}{
		"a file":                  {func(o *Order) { o.Problem.Files[0].Size = 4e9 * units }, 4 * rate},
		"a file, for three hours": {func(o *Order) { o.Problem.Files[0].Size = 4e9 * units; o.Conditions.Window = 2*hour + 1 }, 12 * rate},
		// three checkpoints of each unit, and three states that rounds start from
		"states":              {func(o *Order) { o.Problem.StateBytes = 2e9 }, 7 * rate},
		"fragments of states": {func(o *Order) { o.Problem.StateBytes = 2e9; o.Conditions.CodedBytes = 1 }, 7 * rate}, // three custodians keep all
	} {
		if got := keep(c.bend); got != small+c.more {
			t.Errorf("%s: a custodian is paid %d for a unit, want %d + %d", name, got, small, c.more)
		}
	}
	m := testMatch()
	m.Order.Conditions.MaxPrice = 1_000_000
	m.Order.Problem.Files[0].Size = 4 << 40
	if _, _, err := NewLease(m, 0); err == nil || !strings.Contains(err.Error(), "the order pays at most") {
		t.Errorf("4 TiB are kept for a millionth of their price: %v", err)
	}
}

// A lease's quota grows with nothing but what is paid for.
func TestQuota(t *testing.T) {
	w := newWorld(t)
	p := &w.lease.Order.Problem
	p.StateBytes = 1000
	files, states, unit := uint64(10), uint64(4*1000), uint64(3*1000+MaxList)
	if got, want := w.lease.Quota(), files+states+6*unit; got != want {
		t.Errorf("the quota is %d, want %d", got, want)
	}
	w.lease.Units[0].Attempt = 2
	if got, want := w.lease.Quota(), files+states+8*unit; got != want {
		t.Errorf("after two attempts the quota is %d, want %d", got, want)
	}
	p.StateBytes = maxQuantity / MaxSegments
	if w.lease.Quota() < p.StateBytes {
		t.Error("the quota overflowed")
	}
}
