package cpu

import (
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
)

// vectorLoop returns the machine's own loop for a map function, nil if there is
// none.
func vectorLoop(set *asm.Set, fn tensor.Fn, t tensor.DType) loop { return nil }

// vectorCast is the same for a cast.
func vectorCast(set *asm.Set, from, to tensor.DType) loop { return nil }

// vectorFold is the same for a fold of rows.
func vectorFold(set *asm.Set, fn tensor.Fn, t tensor.DType) loop { return nil }
