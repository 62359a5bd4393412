package evidence

import (
	"fmt"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
)

// Names of a bundle's entries.
const (
	entryBlock      = "anchor/block"      // protobuf LightBlock: signed header and validator set
	entryProof      = "anchor/proof"      // protobuf ProofOps, from the settlement to the header's app hash
	entrySettlement = "anchor/settlement" // job.Settlement
	entryRecord     = "record"            // job.Lease as it ended
	entryOrder      = "order/tx"          // protobuf TxRaw that posted the order
	entryNumber     = "order/account"     // number of the consumer's account, decimal
)

func fileEntry(role string) string { return "file/" + role }

func stateEntry(root canon.Hash) string { return "state/" + root.String() }

// states returns the roots of all states that a record's claims start from or
// end in, except the order's start state, which follows from its model.
func states(l *job.Lease) []canon.Hash {
	seen := map[canon.Hash]bool{l.Order.Problem.Start: true}
	var out []canon.Hash
	add := func(root canon.Hash) {
		if !seen[root] {
			seen[root] = true
			out = append(out, root)
		}
	}
	for i := range l.Units {
		if r := l.Units[i].Receipt; r != nil {
			for _, root := range r.Checkpoints {
				add(root)
			}
		}
	}
	for _, m := range l.Merges[:l.Round] {
		add(m.Root)
	}
	return out
}

// expected returns the names of all entries that a bundle of this record has.
func expected(l *job.Lease) map[string]bool {
	out := map[string]bool{}
	for _, n := range []string{entryBlock, entryProof, entrySettlement, entryRecord, entryOrder, entryNumber} {
		out[n] = true
	}
	for _, f := range l.Order.Problem.Files {
		out[fileEntry(f.Role)] = true
	}
	for _, root := range states(l) {
		out[stateEntry(root)] = true
	}
	return out
}

func wrong(format string, args ...any) error {
	return fmt.Errorf("the bundle proves nothing: "+format, args...)
}
