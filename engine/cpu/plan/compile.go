package plan

import (
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/attention"
	"github.com/tally-network/tally/engine/cpu/gemm"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/reduce"
	"github.com/tally-network/tally/engine/cpu/spatial"
	"github.com/tally-network/tally/engine/cpu/tuning"
)

// chooseKernel returns the fastest kernel for a checked primitive that is no stage of a
// fusion.
func chooseKernel(p *tensor.Primitive, set *asm.KernelSet) kernel.Kernel {
	var k kernel.Kernel
	switch {
	case p.Band != nil:
		k = attention.New(p, set)
	case p.Fn.Scatters():
		k = reduce.NewScatter(p)
	case p.Fn.Kind() == tensor.KindFold:
		if k = spatial.NewPooling(p, set); k == nil {
			k = reduce.New(p, set)
		}
	case p.Fn == tensor.Dot:
		if k = spatial.NewDepthwise(p, set); k == nil {
			k = gemm.New(p, set)
		}
	case p.Fn == tensor.Before:
		k = reduce.NewRank(p)
	}
	if k == nil {
		k = kernel.ByDefinition(p)
	}
	return k
}

// grain estimates how many of a task's blocks are worth a thread.
func grain(p *graph.Program, nodes []int, blocks, grainNs int) int {
	return grainNs/max(estimate(p, nodes)/max(blocks, 1), 1) + 1
}

// estimate returns the nanoseconds that nodes take on one thread. It need only tell
// microseconds from milliseconds.
func estimate(p *graph.Program, nodes []int) (ns int) {
	for _, i := range nodes {
		flops, bytes := p.Nodes[i].Cost()
		ns += flops/tuning.FLOPsPerNs + bytes/tuning.BytesPerNs
	}
	return ns
}
