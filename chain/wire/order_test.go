package wire_test

import (
	"strings"
	"testing"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
)

// An order has one form in transactions: what it goes on from is whole or not there.
func TestParentsAreWholeOrAbsent(t *testing.T) {
	root := canon.Hash{1}
	o := job.Order{Problem: job.Problem{Parent: job.Parent{Order: root, Final: root}}}
	m := wire.OrderToProto(&o)
	if back, err := wire.OrderFromProto(&m); err != nil || back.Problem.Parent != o.Problem.Parent {
		t.Fatalf("read back %v: %v", back.Problem.Parent, err)
	}
	for name, c := range map[string]struct {
		parent string
		root   []byte
	}{
		"zeros of no parent": {"", make([]byte, 32)},
		"no root":            {root.String(), nil},
		"half a root":        {root.String(), root[:16]},
		"no order":           {strings.Repeat("0", 64), root[:]},
	} {
		m := wire.OrderToProto(&o)
		m.Problem.Parent, m.Problem.ParentRoot = c.parent, c.root
		if _, err := wire.OrderFromProto(&m); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
