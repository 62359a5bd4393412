package evidence

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
)

// Names of a bundle's entries.
const (
	entryBlock       = "anchor/block"       // protobuf LightBlock: signed header and validator set
	entryProof       = "anchor/proof"       // protobuf ProofOps, from the accumulator to the header's app hash
	entryAccumulator = "anchor/accumulator" // canon.Accumulator of all settlements
	entryPosition    = "anchor/position"    // canon.Position of the settlement in it
	entrySettlement  = "anchor/settlement"  // job.Settlement
	entryRecord      = "record"             // job.Lease as it ended
	entryOrder       = "order/tx"           // protobuf TxRaw that posted the order
	entryNumber      = "order/account"      // number of the consumer's account, decimal
)

// anchorPrefix begins the names of the entries that a renewal replaces.
const anchorPrefix = "anchor/"

func fileEntry(role string) string { return "file/" + role }

func stateEntry(root canon.Hash) string { return "state/" + root.String() }

// states returns, in ascending order, the roots of all states that a record's claims start from or
// end in, except the order's start state, which follows from its model.
func states(l *job.Lease) []canon.Hash {
	var out []canon.Hash
	for i := range l.Units {
		if r := l.Units[i].Receipt; r != nil {
			out = append(out, r.Checkpoints...)
		}
	}
	for _, m := range l.Merges[:l.Round] {
		if l.Order.Problem.Merges() {
			out = append(out, m.Root)
		}
	}
	slices.SortFunc(out, func(a, b canon.Hash) int { return bytes.Compare(a[:], b[:]) })
	out = slices.Compact(out)
	return slices.DeleteFunc(out, func(h canon.Hash) bool { return h == l.Order.Problem.Start })
}

// fixed returns the names of the entries that a bundle of this record has
// besides states.
func fixed(l *job.Lease) map[string]bool {
	out := map[string]bool{}
	for _, n := range []string{entryBlock, entryProof, entryAccumulator, entryPosition, entrySettlement, entryRecord, entryOrder, entryNumber} {
		out[n] = true
	}
	for _, f := range l.Order.Problem.Files {
		out[fileEntry(f.Role)] = true
	}
	return out
}

func wrong(format string, args ...any) error {
	return fmt.Errorf("the bundle proves nothing: "+format, args...)
}
