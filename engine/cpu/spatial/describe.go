package spatial

import (
	"fmt"

	"github.com/tally-network/tally/engine/cpu/kernel"
)

// Describe implements kernel.Kernel.
func (k *pooling) Describe() kernel.Description {
	d := k.describe("pooling")
	if k.verticalFirst != nil {
		d.Packing = "vertical first, in place"
	}
	return d
}

// Describe implements kernel.Kernel.
func (k *depthwise) Describe() kernel.Description { return k.describe("depthwise") }

func (w *window) describe(name string) kernel.Description {
	packing := "windows from a buffer of phases"
	if w.padded {
		packing += ", padded"
	}
	return kernel.Description{
		Kernel: name, Packing: packing, Handover: kernel.FromAccumulators,
		Blocking: fmt.Sprintf("%d planes of %d × %d, %d a block, %d taps", w.planes.N, w.vertical.n, w.horizontal.n, w.blockPlanes, len(w.taps)),
	}
}
