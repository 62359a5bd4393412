package proof

import (
	"encoding/binary"
	"math/bits"

	"github.com/tally-network/tally/core/canon"
)

// ForcedDrawInput is what a provider's VRF is evaluated on to tell whether an attempt of
// a unit is forced. The seed is of a block after the assignment, and the key was
// registered before: so nobody could choose the output, nor who has it. Only the
// provider knows it until it shows it.
func ForcedDrawInput(order, seed canon.Hash, unit, attempt int) []byte {
	return canon.Encode(func(e *canon.Encoder) {
		e.String("forced")
		e.Hash(order)
		e.Hash(seed)
		e.Uint(uint64(unit))
		e.Uint(uint64(attempt))
	})
}

// Forced reports whether a VRF output over a ForcedDrawInput falls among the given share,
// in basis points: whether its first 64 bits lie below share/10000 · 2⁶⁴.
func Forced(output []byte, share uint64) bool {
	const all = 10_000
	if share >= all || len(output) < 8 {
		return share >= all
	}
	limit, _ := bits.Div64(share, 0, all)
	return binary.BigEndian.Uint64(output) < limit
}
