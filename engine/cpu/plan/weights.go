package plan

import (
	"context"
	"runtime/debug"
	"weak"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/tuning"
	"github.com/tally-network/tally/engine/cpu/weights"
)

// constant is what becomes of a constant of the program.
type constant struct {
	weights []kernel.Weight // as which kernels would read it packed
	plain   bool            // somebody reads it as it is
	source  kernel.Weight   // from whose packed form it can be made again
	packed  *weights.Packed // that form
	weak    weak.Pointer[tensor.Tensor]
}

// Weights says where packed weights are, and what names a constant there.
type Weights struct {
	Store *weights.Store
	Root  func(*tensor.Tensor) canon.Hash
}

// readers finds who reads each constant, and how.
func (pl *Plan) readers() []constant {
	out := make([]constant, len(pl.Program.Consts))
	seen := map[kernel.Kernel][]kernel.Weight{} // steps of a recurrence share kernels
	for t := range pl.Tasks {
		k := &pl.Tasks[t]
		packed := map[int]bool{}
		if x, ok := k.kernel.(kernel.Prepacker); ok {
			at := func(operand int) graph.Ref { return k.Args[operand] } // a kernel's operands come first
			all, known := seen[x]
			if !known {
				all = x.Weights(func(operand int) bool { return at(operand).Kind == graph.RefConst })
				seen[x] = all
			}
			for _, w := range all {
				packed[w.Operand()] = true
				if c := &out[at(w.Operand()).Index]; !known {
					c.weights = append(c.weights, w)
				}
			}
		}
		for i, r := range k.Args {
			if r.Kind == graph.RefConst && !packed[i] {
				out[r.Index].plain = true
			}
		}
	}
	for _, r := range pl.Program.Outputs {
		if r.Kind == graph.RefConst {
			out[r.Index].plain = true
		}
	}
	return out
}

// Pack lets kernels read their constants, the weights of inference, from the store. A
// constant that nobody reads in another way becomes hollow: its packed form replaces it.
// Pack stops with an error soon after ctx is done, and goes on when it is called again.
func (pl *Plan) Pack(ctx context.Context) error {
	if pl.packed {
		return nil
	}
	if from := pl.options.Weights; pl.options.Fused && from.Store != nil {
		c := pl.newCollector()
		for i := range pl.consts {
			if err := pl.packConstant(ctx, i, &c); err != nil {
				return err
			}
		}
	}
	for t := range pl.Tasks {
		k := &pl.Tasks[t]
		k.Grain = grain(pl.Program, k.Nodes, k.Blocks(), pl.options.GrainNs)
	}
	pl.packed = true
	return nil
}

// packConstant lets its kernels read constant i from the store.
func (pl *Plan) packConstant(ctx context.Context, i int, c *collector) error {
	k, x, from := &pl.consts[i], pl.Program.Consts[i], pl.options.Weights
	if len(k.weights) == 0 || kernel.IsHollow(x) {
		return nil
	}
	key := weights.Key{Root: from.Root(x)}
	for _, w := range k.weights {
		key.Layout = w.Layout()
		p, err := from.Store.Get(ctx, key, w.Bytes(), func(dst []byte) error { return w.Pack(ctx, dst, x) })
		switch {
		case err != nil:
			return err
		case p == nil:
			k.plain = true
		default:
			w.Use(p)
			if w.Whole() {
				k.source, k.packed = w, p
			}
		}
	}
	if k.plain || k.packed == nil {
		return nil
	}
	k.weak = weak.Make(x)
	pl.Program.Consts[i] = kernel.Hollow(x)
	c.release(k.weak, len(x.Bytes()))
	return nil
}

// Constant returns constant i of the program as it is, made again if it is hollow.
func (pl *Plan) Constant(i int) (*tensor.Tensor, error) {
	x := pl.Program.Consts[i]
	if pl.consts == nil || !kernel.IsHollow(x) {
		return x, nil
	}
	k := &pl.consts[i]
	if x := k.weak.Value(); x != nil {
		return x, nil
	}
	return k.source.Unpack(k.packed.Bytes())
}

// collector gives back the memory of constants that nobody holds any more, in time: of its
// own accord a garbage collection would come when garbage is as much as all the rest.
type collector struct {
	step, bytes int
	last        []weak.Pointer[tensor.Tensor] // constants let go since the last collection
	vain        bool                          // others hold them
}

// newCollector returns one for the constants of the program.
func (pl *Plan) newCollector() collector {
	total := 0
	for _, x := range pl.Program.Consts {
		total += len(x.Bytes())
	}
	return collector{step: max(tuning.MinCollected, total/tuning.CollectedShare)}
}

// release counts a constant that was let go.
func (c *collector) release(x weak.Pointer[tensor.Tensor], bytes int) {
	c.last, c.bytes = append(c.last, x), c.bytes+bytes
	if c.vain || c.bytes < c.step {
		return
	}
	debug.FreeOSMemory()
	c.vain = true
	for _, x := range c.last {
		c.vain = c.vain && x.Value() != nil
	}
	c.last, c.bytes = c.last[:0], 0
}
