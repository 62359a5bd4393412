package gemm

import (
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// RowsPerLine returns the rows of a line of the padded input that a contraction reads in
// place, 0 if it does not.
func RowsPerLine(k kernel.Kernel) int {
	if k, ok := k.(*contraction); ok {
		return k.a.lineRows
	}
	return 0
}

// PrepackedBytes returns the memory of the constants that a kernel has packed.
func PrepackedBytes(k kernel.Kernel) (n int) {
	d := k.(*contraction)
	for _, m := range []*packedOperand{d.a.prepacked, d.b.prepacked} {
		if m != nil {
			n += m.batches * m.rows * d.p.Terms() * mem.Word
		}
	}
	return n
}
