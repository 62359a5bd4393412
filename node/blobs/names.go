package blobs

import (
	"fmt"
	"math"

	"github.com/ipfs/go-cid"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/store"
)

// Pin returns the name under which a lease's blobs are kept.
func Pin(order canon.Hash) string { return pinPrefix + order.String() }

const pinPrefix = "lease-"

// File returns how a blob is written in an order or a receipt.
func File(role string, r store.Ref) job.File {
	return job.File{Role: role, CID: r.CID.String(), Size: uint64(r.Size)}
}

// RefOf returns the blob that a file names.
func RefOf(f job.File) (store.Ref, error) {
	c, err := cid.Decode(f.CID)
	if err != nil {
		return store.Ref{}, fmt.Errorf("file %q: CID %q: %w", f.Role, f.CID, err)
	}
	if f.Size > math.MaxInt64 {
		return store.Ref{}, fmt.Errorf("file %q has %d bytes", f.Role, f.Size)
	}
	return store.Ref{CID: c, Size: int64(f.Size)}, nil
}

// ListPin returns the name under which the lists of an order's checkpoints are kept. Who
// may read a list follows from its receipt; without it nobody knows what to ask for.
func ListPin(order canon.Hash) string { return "lists-" + order.String() }
