package sequences

import (
	"slices"

	"github.com/tally-network/tally/core/tensor"
)

// TokenArena holds the tokens of many texts until rows are made of them. It is to be held for as long.
type TokenArena struct {
	Allocator tensor.Allocator // nil: texts stay where they are
	slabs     []*tensor.Tensor
	free      []int32 // of the last slab
}

// slabTokens are how many tokens a slab has room for, at least: 16 MiB.
const slabTokens = 1 << 22

// Add returns a text whose tokens lie in the arena. Its mask stays where it is.
func (a *TokenArena) Add(e Example) (Example, error) {
	n := len(e.Tokens)
	if a.Allocator == nil || n == 0 {
		return e, nil
	}
	if n > len(a.free) {
		t, err := a.Allocator.New(tensor.Int32, tensor.Shape{max(n, slabTokens)})
		if err != nil {
			return e, err
		}
		a.slabs, a.free = append(a.slabs, t), tensor.Of[int32](t)
	}
	copy(a.free, e.Tokens)
	e.Tokens, a.free = slices.Clip(a.free[:n]), a.free[n:]
	return e, nil
}
