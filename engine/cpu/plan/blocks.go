package plan

import (
	"bytes"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/quant"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu/affine"
	"github.com/tally-network/tally/engine/cpu/kernel"
	"github.com/tally-network/tally/engine/cpu/quantized"
)

// Quantised weights: a contraction of what Dequantize makes of a constant reads the constant's blocks. What makes float32 of
// them is dropped, unless others read it.

// blockProduct is a contraction that reads blocks.
type blockProduct struct {
	of     quant.Type
	kernel kernel.Kernel
}

// dequantizer recognizes what Dequantize makes of constants, by its structure.
type dequantizer struct {
	*graph.Program
	patterns map[patternKey]*graph.Program
}

// patternKey is a type of blocks, and the shape of what holds them; axes past the rank are 0.
type patternKey struct {
	of    quant.Type
	shape [4]int
}

// maxPattern bounds the primitives that Dequantize comes to.
const maxPattern = 32

func newDequantizer(p *graph.Program) dequantizer {
	return dequantizer{p, map[patternKey]*graph.Program{}}
}

// blocks returns the constant, and the type of its blocks, that a tensor is the elements of; it is not ok if there is none.
func (d *dequantizer) blocks(of graph.Ref) (weight graph.Ref, t quant.Type, ok bool) {
	if of.Kind != graph.RefNode || d.Nodes[of.Index].Type != tensor.Float32 {
		return weight, 0, false
	}
	if weight, t, ok = d.halves(&d.Nodes[of.Index]); ok {
		return weight, t, true
	}
	if weight, ok = d.largest(of); !ok {
		return weight, 0, false
	}
	held, shape := d.Consts[weight.Index], d.Nodes[of.Index].Shape
	for _, t := range quant.Types {
		if size, err := t.Size(shape); err == nil && size == int64(held.Shape.Elements()) && d.matches(of, weight, t) {
			return weight, t, true
		}
	}
	return weight, 0, false
}

// halves returns the constant of floats of 16 bits that a node widens.
func (d *dequantizer) halves(n *graph.Opcode) (weight graph.Ref, t quant.Type, ok bool) {
	if n.Fn != tensor.Cast || n.From[0].Kind != graph.RefConst {
		return weight, 0, false
	}
	t, ok = map[tensor.DType]quant.Type{tensor.Float16: quant.F16, tensor.BFloat16: quant.BF16}[n.Args[0].Type]
	times, inOrder := affine.Repetition(n.Primitive, 0)
	return n.From[0], t, ok && inOrder && times == 1 && n.Args[0].Shape.Elements() == n.Shape.Elements()
}

// largest returns the largest constant of bytes that a node follows from; it is not ok if the node follows from more than
// constants, or by too many nodes.
func (d *dequantizer) largest(of graph.Ref) (best graph.Ref, ok bool) {
	seen := []graph.Ref{of}
	for i := 0; i < len(seen); i++ {
		switch r := seen[i]; r.Kind {
		case graph.RefConst:
			if x := d.Consts[r.Index]; x.Type == tensor.Uint8 && (!ok || x.Shape.Elements() > d.Consts[best.Index].Shape.Elements()) {
				best, ok = r, true
			}
		case graph.RefNode:
			for _, from := range d.Nodes[r.Index].From {
				if !slices.Contains(seen, from) {
					seen = append(seen, from)
				}
			}
		default:
			return best, false
		}
		if len(seen) > 2*maxPattern {
			return best, false
		}
	}
	return best, ok
}

// matches reports whether a node is what Dequantize makes of a constant with blocks of type t.
func (d *dequantizer) matches(node, weight graph.Ref, t quant.Type) bool {
	p := d.pattern(t, d.Consts[weight.Index].Shape)
	if p == nil {
		return false
	}
	same := map[graph.Ref]graph.Ref{}
	var match func(want, have graph.Ref) bool
	match = func(want, have graph.Ref) bool {
		if known, ok := same[want]; ok {
			return known == have
		}
		same[want] = have
		switch {
		case want.Kind == graph.RefSlot:
			return have == weight
		case want.Kind != have.Kind:
			return false
		case want.Kind == graph.RefConst:
			x, y := p.Consts[want.Index], d.Consts[have.Index]
			return x.Type == y.Type && x.Shape.Equal(y.Shape) && bytes.Equal(x.Bytes(), y.Bytes())
		}
		x, y := &p.Nodes[want.Index], &d.Nodes[have.Index]
		if len(x.From) != len(y.From) || !samePrimitive(x.Primitive, y.Primitive) {
			return false
		}
		for i := range x.From {
			if !match(x.From[i], y.From[i]) {
				return false
			}
		}
		return true
	}
	return match(p.Outputs[0], node)
}

// pattern returns the program of Dequantize of a tensor, nil if there is none.
func (d *dequantizer) pattern(t quant.Type, shape tensor.Shape) *graph.Program {
	key := patternKey{of: t}
	if copy(key.shape[:], shape) < len(shape) {
		return nil
	}
	if p, ok := d.patterns[key]; ok {
		return p
	}
	b := graph.NewBuilder("pattern")
	y := b.With(graph.Int("type", int(t))).Op("Dequantize", b.Input("x", tensor.Uint8, shape))
	b.Output(y, 0, nil)
	var p *graph.Program
	if typed, err := op.InferOwn(b.Graph()); err == nil {
		if p, err = typed.Function(); err != nil {
			p = nil
		}
	}
	if p != nil {
		last := &p.Nodes[p.Outputs[0].Index]
		if last.Fn == tensor.Copy && !last.Args[0].Flat { // readers look through it
			p.Outputs[0] = last.From[0]
		}
	}
	d.patterns[key] = p
	return p
}

// samePrimitive reports whether two primitives without bands are equal.
func samePrimitive(x, y *tensor.Primitive) bool {
	return x.Fn == y.Fn && x.Type == y.Type && x.Band == nil && y.Band == nil && x.Shape.Equal(y.Shape) && slices.Equal(x.Fold, y.Fold) && slices.Equal(x.Imm, y.Imm) &&
		slices.EqualFunc(x.Args, y.Args, func(a, b tensor.Access) bool {
			return a.Type == b.Type && a.Flat == b.Flat && a.Shape.Equal(b.Shape) && slices.EqualFunc(a.Dims, b.Dims, func(a, b tensor.Dim) bool {
				return a.Offset == b.Offset && a.Via == b.Via && slices.Equal(a.Terms, b.Terms)
			})
		})
}

// readBlocks lets contractions read the blocks of their weights where there is a kernel for it.
func (p *program) readBlocks() {
	d, cloned := newDequantizer(p.Program), false
	p.blocks = map[int]blockProduct{}
	for i := range p.nodes {
		n := &p.nodes[i]
		if n.Fn != tensor.Dot || n.Type != tensor.Float32 {
			continue
		}
		for arg := range n.From {
			weight, t, ok := d.blocks(n.From[arg])
			if !ok {
				continue
			}
			k := quantized.New(n.Primitive, arg, t, d.Consts[weight.Index], p.set)
			if k == nil {
				continue
			}
			if !cloned {
				p.nodes, cloned = slices.Clone(p.nodes), true
				n = &p.nodes[i]
			}
			n.From = slices.Clone(n.From)
			n.From[arg] = weight
			p.blocks[i] = blockProduct{t, k}
			break
		}
	}
}

// kernelOf returns the kernel of a node that is no stage of a fusion.
func (p *program) kernelOf(node int) kernel.Kernel {
	if b, ok := p.blocks[node]; ok {
		return b.kernel
	}
	return chooseKernel(p.nodes[node].Primitive, p.set)
}
