package lower

import (
	"fmt"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Limits on what one graph comes to.
const (
	maxWork    = 1 << 60 // floating-point operations, and bytes moved
	dedupBelow = 1 << 12 // size in bytes up to which equal constants are held once
)

// Emitter collects the primitives of a graph. What is emitted twice is there
// once, and what follows from constants alone is computed at once.
type Emitter struct {
	profile Profile
	account *Account
	nodes   []graph.Opcode
	consts  []*tensor.Tensor
	seen    map[string]graph.Ref // of what there is already, by its encoding
	flops   int
	bytes   int
	origin  graph.Origin // of what is emitted next
	lasting bool         // constants stay as they are
}

func newEmitter(p Profile) *Emitter {
	return &Emitter{profile: p, account: newAccount(), seen: map[string]graph.Ref{}}
}

// Operand is a tensor and how a primitive reads it. A View makes one.
type Operand struct {
	ref graph.Ref
	tensor.Access
}

// Emit appends a primitive that reads the operands, and returns its output, of the
// type and shape of p. It sets p.Args. A product of floats (tensor.Dot) is computed as
// the profile has it. It fails if p is not allowed (tensor.Primitive.Check), or if the
// graph comes to too much.
func (e *Emitter) Emit(p *tensor.Primitive, in ...Operand) (View, error) {
	if p.Fn == tensor.Dot && e.profile != FP32 && in[0].Type.Float() {
		return e.product(*p, in[0], in[1])
	}
	return e.add(p, in...)
}

// add appends a primitive, unless it is there already or can be computed now.
func (e *Emitter) add(p *tensor.Primitive, in ...Operand) (View, error) {
	from := make([]graph.Ref, len(in))
	p.Args = make([]tensor.Access, len(in))
	constant := true
	for i, o := range in {
		from[i], p.Args[i] = o.ref, o.Access
		constant = constant && o.ref.Kind == graph.RefConst
	}
	if err := p.Check(); err != nil {
		return View{}, err
	}
	if work := p.Shape.Elements() * max(p.Terms(), 1); constant && !e.lasting && e.account.canCompute(work) {
		return e.compute(p, from)
	}
	n := graph.Opcode{Primitive: p, From: from}
	key := "node" + string(canon.Encode(n.Encode))
	n.Origin = e.origin
	if err := e.account.Afford(len(key)); err != nil { // also of what is there already: a loop may ask for it again and again
		return View{}, err
	}
	ref, ok := e.seen[key]
	if !ok {
		f, b := p.Cost()
		e.flops, e.bytes = e.flops+f, e.bytes+b
		if err := e.account.Afford(opcodeSize(&n)); err != nil {
			return View{}, err
		}
		if f > maxWork || b > maxWork || e.flops > maxWork || e.bytes > maxWork || len(e.nodes) >= graph.MaxNodes {
			return View{}, fmt.Errorf("the model up to here needs %d primitives, %d operations and %d bytes, which is more than is allowed", len(e.nodes), e.flops, e.bytes)
		}
		ref = graph.Ref{Kind: graph.RefNode, Index: len(e.nodes)}
		e.nodes = append(e.nodes, n)
		e.seen[key] = ref
	}
	return whole(ref, p.Type, p.Shape), nil
}

// compute evaluates a primitive of constants.
func (e *Emitter) compute(p *tensor.Primitive, from []graph.Ref) (View, error) {
	if err := e.account.Afford(tensorSize(p.Type, p.Shape)); err != nil {
		return View{}, err
	}
	args := make([]*tensor.Tensor, len(from))
	for i, r := range from {
		args[i] = e.consts[r.Index]
	}
	t, err := p.Eval(args)
	if err != nil {
		return View{}, err
	}
	return e.Const(t), nil
}

// Const holds t, which must not change any more, and returns it as it is. Equal
// constants of up to 4 KB are held once. It charges nothing.
func (e *Emitter) Const(t *tensor.Tensor) View {
	key := ""
	if len(t.Bytes()) <= dedupBelow {
		root := t.Root()
		key = "const" + string(root[:])
	}
	ref, ok := e.seen[key]
	if !ok {
		ref = graph.Ref{Kind: graph.RefConst, Index: len(e.consts)}
		e.consts = append(e.consts, t)
		if key != "" {
			e.seen[key] = ref
		}
	}
	return whole(ref, t.Type, t.Shape)
}

// known returns the value of v if it is constant, otherwise nil.
func (e *Emitter) known(v View) (*tensor.Tensor, error) {
	if v.src.Kind != graph.RefConst {
		return nil, nil
	}
	p, err := e.plain(v)
	if err != nil || p.src.Kind != graph.RefConst {
		return nil, err
	}
	return e.consts[p.src.Index], nil
}

// Affine returns v so that it can be read at any coordinates, as Through, Access and
// what builds on them need: itself, or a copy if it is flat.
func (e *Emitter) Affine(v View) (View, error) {
	if !v.flat {
		return v, nil
	}
	return e.Emit(copyOf(v.Type, v.Shape), Operand{v.src, tensor.Access{Type: v.Type, Shape: v.from, Flat: true}})
}

// plain returns v as a tensor of its own.
func (e *Emitter) plain(v View) (View, error) {
	switch {
	case v.flat:
		return e.Affine(v)
	case v.identity():
		return whole(v.src, v.Type, v.from), nil
	}
	return e.Emit(copyOf(v.Type, v.Shape), v.Access(Axes(0, len(v.Shape))))
}

// Bounded returns v so that positions outside the given axes miss its source, and a
// primitive takes them for absent: itself, or a copy.
func (e *Emitter) Bounded(v View, list ...int) (View, error) {
	for _, a := range list {
		if !v.exact(a) {
			return e.plain(v)
		}
	}
	return v, nil
}

func copyOf(t tensor.DType, s tensor.Shape) *tensor.Primitive {
	return &tensor.Primitive{Fn: tensor.Copy, Type: t, Shape: s, Imm: []tensor.Word{0}}
}

// Reshape returns v in shape s, in row-major order; it emits a copy only if v cannot be
// read so. It fails if s is not allowed, or has not as many elements.
func (e *Emitter) Reshape(v View, s tensor.Shape) (View, error) {
	if err := s.Check(); err != nil {
		return View{}, err
	}
	if v.Shape.Elements() != s.Elements() {
		return View{}, fmt.Errorf("shape %v does not fit the %d elements of %v", s, v.Shape.Elements(), v.Shape)
	}
	switch {
	case v.Shape.Equal(s):
		return v, nil
	case s.Elements() == 0:
		t, err := tensor.New(v.Type, s)
		if err != nil {
			return View{}, err
		}
		return e.Const(t), nil
	case v.contiguous():
		v = whole(v.src, v.Type, v.from)
		if v.Shape.Equal(s) {
			return v, nil
		}
	}
	if w, ok := v.split(s); ok {
		return w, nil
	}
	v, err := e.plain(v)
	if err != nil {
		return View{}, err
	}
	return View{Type: v.Type, Shape: s, src: v.src, from: v.from, flat: true}, nil
}

// Map emits fn of the elements of its operands, which broadcast to one shape; the
// output has that shape and type t. It fails if they do not broadcast, or if fn does not
// take or give the types.
func (e *Emitter) Map(fn tensor.Fn, t tensor.DType, in ...View) (View, error) {
	var s tensor.Shape
	var err error
	for _, v := range in {
		if s, err = s.Broadcast(v.Shape); err != nil {
			return View{}, err
		}
	}
	ops := make([]Operand, len(in))
	for i, v := range in {
		if v.flat && v.Shape.Equal(s) {
			ops[i] = Operand{v.src, tensor.Access{Type: v.Type, Shape: v.from, Flat: true}}
			continue
		}
		if v, err = e.Affine(v); err != nil {
			return View{}, err
		}
		ops[i] = v.Broadcast(s).Access(Axes(0, len(s)))
	}
	return e.Emit(&tensor.Primitive{Fn: fn, Type: t, Shape: s}, ops...)
}

// Fold emits a fold of v over the given axes, ascending, which keep the extent 1; the
// output has type t. Sums and products of halves are computed in float32. imm are the
// immediate words that fn takes.
func (e *Emitter) Fold(fn tensor.Fn, t tensor.DType, v View, over []int, imm ...tensor.Word) (View, error) {
	if t.Half() && (fn == tensor.FoldSum || fn == tensor.FoldProd) {
		return e.Summed(v, func(v View) (View, error) { return e.Fold(fn, v.Type, v, over, imm...) })
	}
	v, err := e.Affine(v)
	if err != nil {
		return View{}, err
	}
	p := &tensor.Primitive{Fn: fn, Type: t, Shape: v.Shape.Clone(), Imm: imm}
	coords := Axes(0, len(v.Shape))
	for _, a := range over {
		coords[a] = Axis(len(v.Shape) + len(p.Fold))
		p.Fold = append(p.Fold, v.Shape[a])
		p.Shape[a] = 1
	}
	return e.Emit(p, v.Access(coords))
}

// Cast converts v to type t, if it is of another.
func (e *Emitter) Cast(v View, t tensor.DType) (View, error) {
	if v.Type == t {
		return v, nil
	}
	return e.Map(tensor.Cast, t, v)
}

// Summed calls f with v in a type of which there are sums, and returns its
// result in the type of v: of halves, in float32 and rounded once.
func (e *Emitter) Summed(v View, f func(View) (View, error)) (View, error) {
	t := v.Type
	if !t.Half() {
		return f(v)
	}
	v, err := e.Cast(v, tensor.Float32)
	if err == nil {
		v, err = f(v)
	}
	if err != nil {
		return View{}, err
	}
	return e.Cast(v, t)
}
