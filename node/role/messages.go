package role

import (
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// FileMessage returns a file as messages carry it.
func FileMessage(f job.File) marketv1.File {
	return marketv1.File{Role: f.Role, Cid: f.CID, Size_: f.Size}
}

// Submit returns the message that posts a receipt.
func Submit(r *job.Receipt, signature []byte) *workv1.MsgSubmit {
	return &workv1.MsgSubmit{
		Provider: r.Provider, Signature: signature,
		Receipt: workv1.Receipt{
			Order: r.Order.String(), Unit: uint32(r.Unit), Attempt: uint32(r.Attempt), Provider: r.Provider,
			Start: r.Start[:], Checkpoints: Bytes(r.Checkpoints), Flops: r.FLOPs, Data: FileMessage(r.Data),
		},
	}
}

// Bytes returns hashes as messages carry them.
func Bytes(hs []canon.Hash) [][]byte {
	out := make([][]byte, len(hs))
	for i := range hs {
		out[i] = hs[i][:]
	}
	return out
}
