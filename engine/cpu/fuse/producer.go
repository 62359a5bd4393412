package fuse

import (
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/mem"
)

// ProducerFusion is a producer and a fusion that alone reads its output, element by element:
// bias, normalisation, activation, a residual. Each block goes through the fusion while it
// is in the cache.
type ProducerFusion struct {
	kernel.Producer
	tail     *Fusion
	operands int // of the producer, before those of the fusion
}

// WithEpilogue returns producer k followed by a fusion. Of the operands of both, the first
// are k's.
func WithEpilogue(k kernel.Producer, tail *Fusion, operands int) *ProducerFusion {
	return &ProducerFusion{k, tail, operands}
}

// Run computes blocks lo…hi−1. The last of outs is the producer's.
func (k *ProducerFusion) Run(w *kernel.Worker, outs, args []*tensor.Tensor, lo, hi int) error {
	n, s := len(outs)-1, kernel.Scratch[scratch](w)
	s.worker = w
	epilogue := func(at, size, rows, pitch int, from kernel.Source) error {
		if !k.tail.ReadsSource() {
			from.CopyTo(mem.Words(outs[n]), at, size, rows, pitch)
			from = kernel.Source{}
		}
		return k.tail.runRows(s, outs[:n], args[k.operands:], at, size, rows, pitch, from)
	}
	return kernel.Produce(k.Producer, w, outs[n], args[:k.operands], lo, hi, epilogue)
}

// OverwritesHead is [Builder.Overwrites] for a producer's fusion with operands args: it may
// overwrite the head alone, for others may still be read for the next blocks.
func (l *Builder) OverwritesHead(o, head int, args []graph.Ref) (out []int) {
	if o == len(l.Outs) {
		return nil
	}
	for _, a := range l.Overwrites(o) {
		if a += len(args) - len(l.Args); args[a] == (graph.Ref{Kind: graph.RefNode, Index: head}) {
			out = append(out, a)
		}
	}
	return out
}
