package op

import (
	"fmt"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Limits on lowering one graph.
const (
	foldBudget = 1 << 22 // terms that may be computed for constants
	maxWork    = 1 << 60 // floating-point operations, and bytes moved
	dedupBelow = 1 << 12 // size in bytes up to which equal constants are held once
)

// lowering collects the primitives of a graph.
type lowering struct {
	profile Profile
	names   *graph.Builder // names and constants of expansions
	values  map[string]view
	alias   map[string]string // output of a composite operator → that of its expansion
	nodes   []graph.Opcode
	consts  []*tensor.Tensor
	seen    map[string]graph.Ref // of what there is already, by its encoding
	budget  int
	memory  int // bytes that may still be taken
	flops   int
	bytes   int
	origin  graph.Origin
	draws   bool // results follow from seeds

	flatten bool         // collect flat; the calls are of no use then
	flat    []graph.Node // those of the graph, and what nodes that hold graphs come to
	inside  int          // expansions of others
}

func newLowering(g *graph.Graph, p Profile) *lowering {
	return &lowering{
		profile: p,
		names:   graph.Extend(g),
		values:  map[string]view{},
		alias:   map[string]string{},
		seen:    map[string]graph.Ref{},
		budget:  foldBudget,
		memory:  maxMemory,
	}
}

// operand is a tensor and how a primitive reads it.
type operand struct {
	ref graph.Ref
	tensor.Access
}

// emit appends a primitive, a product of floats as the profile has it.
func (l *lowering) emit(p *tensor.Primitive, in ...operand) (view, error) {
	if p.Fn == tensor.Dot && l.profile != FP32 && in[0].Type.Float() {
		return l.product(*p, in[0], in[1])
	}
	return l.add(p, in...)
}

// add appends a primitive, unless it is there already or can be computed now.
func (l *lowering) add(p *tensor.Primitive, in ...operand) (view, error) {
	from := make([]graph.Ref, len(in))
	p.Args = make([]tensor.Access, len(in))
	constant := true
	for i, o := range in {
		from[i], p.Args[i] = o.ref, o.Access
		constant = constant && o.ref.Kind == graph.RefConst
	}
	if err := p.Check(); err != nil {
		return view{}, err
	}
	if work := p.Shape.Elements() * max(p.Terms(), 1); constant && work <= l.budget {
		l.budget -= max(work, 1)
		return l.compute(p, from)
	}
	n := graph.Opcode{Primitive: p, From: from}
	key := "node" + string(canon.Encode(n.Encode))
	n.Origin = l.origin
	if err := l.afford(len(key)); err != nil { // also of what is there already: a loop may ask for it again and again
		return view{}, err
	}
	ref, ok := l.seen[key]
	if !ok {
		f, b := p.Cost()
		l.flops, l.bytes = l.flops+f, l.bytes+b
		if err := l.afford(opcodeSize(&n)); err != nil {
			return view{}, err
		}
		if f > maxWork || b > maxWork || l.flops > maxWork || l.bytes > maxWork || len(l.nodes) >= graph.MaxNodes {
			return view{}, fmt.Errorf("the model up to here needs %d primitives, %d operations and %d bytes, which is more than is allowed", len(l.nodes), l.flops, l.bytes)
		}
		ref = graph.Ref{Kind: graph.RefNode, Index: len(l.nodes)}
		l.nodes = append(l.nodes, n)
		l.seen[key] = ref
	}
	return whole(ref, p.Type, p.Shape), nil
}

// charge takes n terms from the budget for constants.
func (l *lowering) charge(n int) error {
	if n > l.budget {
		return fmt.Errorf("constants of %d elements are too large to be computed while the model is read", n)
	}
	l.budget -= n
	return nil
}

// compute evaluates a primitive of constants.
func (l *lowering) compute(p *tensor.Primitive, from []graph.Ref) (view, error) {
	if err := l.afford(tensorSize(p.Type, p.Shape)); err != nil {
		return view{}, err
	}
	args := make([]*tensor.Tensor, len(from))
	for i, r := range from {
		args[i] = l.consts[r.Index]
	}
	t, err := p.Eval(args)
	if err != nil {
		return view{}, err
	}
	return l.hold(t), nil
}

// hold returns a constant.
func (l *lowering) hold(t *tensor.Tensor) view {
	key := ""
	if len(t.Bytes()) <= dedupBelow {
		root := t.Root()
		key = "const" + string(root[:])
	}
	ref, ok := l.seen[key]
	if !ok {
		ref = graph.Ref{Kind: graph.RefConst, Index: len(l.consts)}
		l.consts = append(l.consts, t)
		if key != "" {
			l.seen[key] = ref
		}
	}
	return whole(ref, t.Type, t.Shape)
}

// known returns the value of v if it is constant, otherwise nil.
func (l *lowering) known(v view) (*tensor.Tensor, error) {
	if v.src.Kind != graph.RefConst {
		return nil, nil
	}
	p, err := l.plain(v)
	if err != nil || p.src.Kind != graph.RefConst {
		return nil, err
	}
	return l.consts[p.src.Index], nil
}

// affine returns v so that it can be read at any coordinates.
func (l *lowering) affine(v view) (view, error) {
	if !v.flat {
		return v, nil
	}
	return l.emit(copyOf(v.Type, v.Shape), operand{v.src, tensor.Access{Type: v.Type, Shape: v.from, Flat: true}})
}

// plain returns v as a tensor of its own.
func (l *lowering) plain(v view) (view, error) {
	switch {
	case v.flat:
		return l.affine(v)
	case v.identity():
		return whole(v.src, v.Type, v.from), nil
	}
	return l.emit(copyOf(v.Type, v.Shape), v.access(axes(0, len(v.Shape))))
}

// bounded returns v so that positions outside the given axes miss its source.
func (l *lowering) bounded(v view, list ...int) (view, error) {
	for _, a := range list {
		if !v.exact(a) {
			return l.plain(v)
		}
	}
	return v, nil
}

func copyOf(t tensor.DType, s tensor.Shape) *tensor.Primitive {
	return &tensor.Primitive{Fn: tensor.Copy, Type: t, Shape: s, Imm: []tensor.Word{0}}
}

// reshape returns v in another shape of as many elements.
func (l *lowering) reshape(v view, s tensor.Shape) (view, error) {
	if err := s.Check(); err != nil {
		return view{}, err
	}
	if v.Shape.Elements() != s.Elements() {
		return view{}, fmt.Errorf("shape %v does not fit the %d elements of %v", s, v.Shape.Elements(), v.Shape)
	}
	switch {
	case v.Shape.Equal(s):
		return v, nil
	case s.Elements() == 0:
		t, err := tensor.New(v.Type, s)
		if err != nil {
			return view{}, err
		}
		return l.hold(t), nil
	case v.contiguous():
		v = whole(v.src, v.Type, v.from)
		if v.Shape.Equal(s) {
			return v, nil
		}
	}
	if w, ok := v.split(s); ok {
		return w, nil
	}
	v, err := l.plain(v)
	if err != nil {
		return view{}, err
	}
	return view{Type: v.Type, Shape: s, src: v.src, from: v.from, flat: true}, nil
}

// pointwise emits a map primitive over operands that broadcast.
func (l *lowering) pointwise(fn tensor.Fn, t tensor.DType, in ...view) (view, error) {
	var s tensor.Shape
	var err error
	for _, v := range in {
		if s, err = s.Broadcast(v.Shape); err != nil {
			return view{}, err
		}
	}
	ops := make([]operand, len(in))
	for i, v := range in {
		if v.flat && v.Shape.Equal(s) {
			ops[i] = operand{v.src, tensor.Access{Type: v.Type, Shape: v.from, Flat: true}}
			continue
		}
		if v, err = l.affine(v); err != nil {
			return view{}, err
		}
		ops[i] = v.broadcast(s).access(axes(0, len(s)))
	}
	return l.emit(&tensor.Primitive{Fn: fn, Type: t, Shape: s}, ops...)
}

// reduce emits a fold of v over the given axes, which keep the extent 1.
func (l *lowering) reduce(fn tensor.Fn, t tensor.DType, v view, over []int, imm ...tensor.Word) (view, error) {
	if t.Half() && (fn == tensor.FoldSum || fn == tensor.FoldProd) {
		return l.summed(v, func(v view) (view, error) { return l.reduce(fn, v.Type, v, over, imm...) })
	}
	v, err := l.affine(v)
	if err != nil {
		return view{}, err
	}
	p := &tensor.Primitive{Fn: fn, Type: t, Shape: v.Shape.Clone(), Imm: imm}
	coords := axes(0, len(v.Shape))
	for _, a := range over {
		coords[a] = axis(len(v.Shape) + len(p.Fold))
		p.Fold = append(p.Fold, v.Shape[a])
		p.Shape[a] = 1
	}
	return l.emit(p, v.access(coords))
}
