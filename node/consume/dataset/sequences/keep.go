package sequences

import (
	"slices"

	"github.com/tally-network/tally/core/tensor"
)

// Keeper keeps the tokens of many texts in a memory until rows are made of them. It is to be held for as long.
type Keeper struct {
	Memory tensor.Memory // nil: Go's
	pieces []*tensor.Tensor
	free   []int32 // of the last piece
}

// pieceTokens are how many tokens a piece has room for, at least.
const pieceTokens = 1 << 22

// Keep returns a text whose tokens lie in the memory. Its mask stays where it is.
func (k *Keeper) Keep(e Example) (Example, error) {
	n := len(e.Tokens)
	if k.Memory == nil || n == 0 {
		return e, nil
	}
	if n > len(k.free) {
		t, err := k.Memory.New(tensor.Int32, tensor.Shape{max(n, pieceTokens)})
		if err != nil {
			return e, err
		}
		k.pieces, k.free = append(k.pieces, t), tensor.Of[int32](t)
	}
	copy(k.free, e.Tokens)
	e.Tokens, k.free = slices.Clip(k.free[:n]), k.free[n:]
	return e, nil
}
