package plan

import (
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/asm"
	"github.com/tally-network/tally/engine/cpu/gemm"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/reduce"
	"github.com/tally-network/tally/engine/cpu/spatial"
)

// chooseKernel returns the fastest kernel for a checked primitive that is no stage of a
// fusion.
func chooseKernel(p *tensor.Primitive, set *asm.KernelSet) kernel.Kernel {
	var k kernel.Kernel
	switch {
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
		ns += flops/20 + bytes/40 // as measured
	}
	return ns
}

// maxPrepacked bounds the memory of a plan for packed constants, in bytes: it trades that
// against time, for what is beyond it is packed in every run.
const maxPrepacked = 512 << 20

// prepack lets the kernel of a node pack the constants that it reads, the weights of
// inference, once, within a budget of bytes. It returns how many are left.
func (p *program) prepack(k kernel.Kernel, node, budget int) (left int) {
	x, ok := k.(kernel.Prepacker)
	if !ok {
		return budget
	}
	consts := make([]*tensor.Tensor, len(p.nodes[node].From))
	for i, ref := range p.sources(node) {
		if ref.Kind == graph.RefConst {
			consts[i] = p.Consts[ref.Index]
		}
	}
	return x.Prepack(consts, budget)
}
