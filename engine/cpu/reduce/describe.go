package reduce

import (
	"fmt"

	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/kernel"
)

// Describe implements kernel.Kernel.
func (k *folding) Describe() kernel.Description {
	way := "rows"
	if k.columns {
		way = "columns"
	}
	return kernel.Description{Kernel: "fold by " + way, Blocking: fmt.Sprintf("%d elements of %d terms", k.n, k.terms)}
}

// Describe implements kernel.Kernel.
func (k *rank) Describe() kernel.Description {
	return kernel.Description{Kernel: "rank", Blocking: fmt.Sprintf("%d rows of %d", tensor.Shape(k.rows).Elements(), k.n)}
}

// Describe implements kernel.Kernel.
func (k *scatter[T]) Describe() kernel.Description {
	return kernel.Description{Kernel: "scatter", Blocking: fmt.Sprintf("%d elements, updates in runs of %d", k.n, k.row)}
}
