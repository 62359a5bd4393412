package gemm

import "github.com/tally-network/tally/engine/cpu/kernel"

// RowsPerLine returns the rows of a line of the padded input that a contraction reads in
// place, 0 if it does not.
func RowsPerLine(k kernel.Kernel) int {
	if k, ok := k.(*contraction); ok {
		return k.a.lineRows
	}
	return 0
}
