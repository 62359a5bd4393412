package kernel

import "fmt"

// Description says in words how a kernel computes, for people who look for what is slow.
type Description struct {
	Kernel   string // its name
	Blocking string // how the output falls into blocks and tiles
	Packing  string // how operands are read
	Fusion   string // what follows it, or is computed in its place
	Handover string // of a producer: where an epilogue finds a block
}

// Where an epilogue finds a block of a producer.
const (
	FromAccumulators = "from the accumulators"
	FromOutput       = "from the output, where the block is computed"
	AfterStoring     = "from the output, where the block is stored first"
)

// Describe implements Kernel.
func (k *definition) Describe() Description {
	return Description{Kernel: "definition", Blocking: fmt.Sprintf("%d elements, one at a time", k.Blocks())}
}
