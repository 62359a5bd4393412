package onnx

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/format/elements"
)

// Memory that one item takes here and in graph.Canonical together, above the
// bytes of its names: slices and maps that grow, all generations counted.
const (
	nodeCost  = 560
	nameCost  = 100 // of a definition
	valueCost = nameCost + 100
	constCost = nameCost + 240
	loadCost  = 700 // of a tensor above its elements
	attrCost  = 270 // above its values
)

// unnamed is the name of a graph that has none. ONNX wants one.
const unnamed = "graph"

// scope is what is known where nodes stand.
type scope struct {
	set      int  // operator set that they are of
	depth    int  // of graphs around
	function bool // of which one, not of a graph
	at       int  // nodes read

	inlined []graph.Node // in the form of graph.Opset
}

// maxDepth bounds graphs inside nodes and functions inside functions.
const maxDepth = 8

// within reads something in a scope of its own.
func (r *reader) within(s scope, read func() error) error {
	if s.depth > maxDepth {
		return unsupported(fmt.Sprintf("graphs and functions lie more than %d deep inside others", maxDepth))
	}
	outer := r.scope
	defer func() { r.scope = outer }()
	r.scope = &s
	return read()
}

// graph reads a graph, brings it to graph.Opset and calls functions in it.
func (r *reader) graph(x field, s scope) (g *graph.Graph, err error) {
	err = r.within(s, func() error {
		if g, err = r.contents(x); err == nil {
			err = r.complete(g)
		}
		return err
	})
	return g, err
}

// complete upgrades the nodes of the scope and adds what functions gave.
func (r *reader) complete(g *graph.Graph) error {
	if err := r.upgrade(g, r.set); err != nil {
		return err
	}
	g.Nodes = append(g.Nodes, r.inlined...)
	if n := len(g.Nodes); n > graph.MaxNodes {
		return fmt.Errorf("the graph has %d nodes with its functions in place, limit %d", n, graph.MaxNodes)
	}
	return nil
}

func (r *reader) contents(x field) (*graph.Graph, error) {
	m, err := r.message(&graphSchema, x)
	if err != nil {
		return nil, err
	}
	if n := m.count[graphNode]; n > graph.MaxNodes {
		return nil, fmt.Errorf("the graph has %d nodes, limit %d", n, graph.MaxNodes)
	}
	for _, item := range []struct{ num, cost int64 }{
		{graphNode, nodeCost}, {graphConst, constCost}, {graphInput, valueCost}, {graphOutput, valueCost},
	} {
		if err := r.charge(int64(m.count[item.num]), item.cost); err != nil {
			return nil, err
		}
	}
	r.loads = slices.Grow(r.loads, int(m.count[graphConst]))
	g := &graph.Graph{
		Name:    unnamed,
		Inputs:  make([]graph.Value, 0, m.count[graphInput]),
		Outputs: make([]graph.Value, 0, m.count[graphOutput]),
		Consts:  make([]graph.Const, 0, m.count[graphConst]),
		Nodes:   make([]graph.Node, 0, m.count[graphNode]),
	}
	for x, err := range m.fields() {
		if err != nil {
			return nil, err
		}
		switch x.num {
		case graphName:
			var name string
			if name, err = r.text(x, graph.MaxName); name != "" {
				g.Name = name
			}
		case graphInput:
			err = add(&g.Inputs, x, r.input)
		case graphOutput:
			err = add(&g.Outputs, x, r.output)
		case graphConst:
			err = add(&g.Consts, x, r.initializer)
		case graphNode:
			err = r.place(g, x)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.label(x, r.at), err)
		}
	}
	return g, nil
}

func add[T any](list *[]T, x field, read func(field) (T, error)) error {
	v, err := read(x)
	*list = append(*list, v)
	return err
}

// label names a field of a graph for an error, as far as it can be read.
func (r *reader) label(x field, nodes int) string {
	schema, nameField := &valueSchema, valueName
	switch x.num {
	case graphName:
		return "name of the graph"
	case graphNode:
		schema, nameField = &nodeSchema, nodeName
	case graphConst:
		schema, nameField = &tensorSchema, tensorName
	}
	var name, op string
	m := message{file: r.file, of: schema, at: x.at, end: x.end}
	for y, err := range m.fields() {
		switch {
		case err != nil:
		case int(y.num) == nameField:
			name, _ = r.text(y, graph.MaxName)
		case x.num == graphNode && y.num == nodeOp:
			op, _ = r.text(y, graph.MaxName)
		}
	}
	if x.num == graphNode {
		return nodeLabel(nodes-1, &graph.Node{Name: name, Op: op})
	}
	return fmt.Sprintf("%s %q", graphSchema.fields[x.num].name, name)
}

// overridden drops the inputs that initializers give a value: files up to IR
// version 3 list every initializer as an input.
func overridden(g *graph.Graph) error {
	if len(g.Consts) == 0 {
		return nil
	}
	consts := make(map[string]*tensor.Tensor, len(g.Consts))
	for _, c := range g.Consts {
		consts[c.Name] = c.Tensor
	}
	inputs := g.Inputs[:0]
	for _, v := range g.Inputs {
		t := consts[v.Name]
		switch {
		case t == nil:
			inputs = append(inputs, v)
		case t.Type != v.Type || !t.Shape.Equal(v.Shape):
			return fmt.Errorf("input %q is %v%v and its initializer %v%v", v.Name, v.Type, v.Shape, t.Type, t.Shape)
		}
	}
	g.Inputs = inputs
	return nil
}

// checkShapes returns an error if a shape is given for what is no input.
func (r *reader) checkShapes(inputs []graph.Value) error {
	var names []string
	for _, v := range inputs {
		names = append(names, v.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(r.opt.Shapes)) {
		if !slices.Contains(names, name) {
			return fmt.Errorf("%w %q; it takes %q", ErrNoInput, name, names)
		}
	}
	return nil
}

// input reads the name and type of an input of the graph.
func (r *reader) input(x field) (graph.Value, error) {
	v, typ, err := r.value(x)
	switch {
	case err != nil:
	case r.depth > 0: // what a graph inside a node is given, it takes
		err = r.tensorOrNothing(typ)
	default:
		v.Type, v.Shape, err = r.valueType(typ, r.opt.Shapes[v.Name])
	}
	return v, err
}

// output reads the name and type of an output of the graph.
func (r *reader) output(x field) (graph.Value, error) {
	v, typ, err := r.value(x)
	switch {
	case err != nil:
	case r.depth > 0:
		err = r.tensorOrNothing(typ)
	case r.opt.Shapes != nil:
		v.Type, _, err = r.tensorType(typ)
	default:
		v.Type, v.Shape, err = r.valueType(typ, nil)
	}
	return v, err
}

// tensorOrNothing refuses types that are given and are no tensors.
func (r *reader) tensorOrNothing(typ field) error {
	m, err := r.message(&typeSchema, typ)
	if err != nil || !m.has(typeTensor) {
		return err
	}
	_, _, err = r.tensorType(typ)
	return err
}

// value reads the name of an input or output of the graph, and finds its type.
func (r *reader) value(x field) (v graph.Value, typ field, err error) {
	m, err := r.message(&valueSchema, x)
	if err != nil {
		return v, typ, err
	}
	for y, err := range m.fields() {
		switch {
		case err != nil:
			return v, typ, err
		case y.num == valueName:
			if v.Name, err = r.text(y, graph.MaxName); err != nil {
				return v, typ, err
			}
		case y.num == valueType:
			typ = y
		}
	}
	return v, typ, nil
}

// tensorType reads the element type of a TypeProto, which must be a tensor
// type, and finds the shape, if there is one.
func (r *reader) tensorType(x field) (typ tensor.DType, shape *field, err error) {
	m, err := r.message(&typeSchema, x)
	if err != nil {
		return 0, nil, err
	}
	var inner field
	for y, err := range m.fields() {
		if err != nil {
			return 0, nil, err
		}
		if y.num == typeTensor {
			inner = y
		}
	}
	if m, err = r.message(&tensorTypeSchema, inner); err != nil {
		return 0, nil, err
	}
	if !m.has(tensorTypeElem) {
		return 0, nil, fmt.Errorf("no element type is given")
	}
	for y, err := range m.fields() {
		if err != nil {
			return 0, nil, err
		}
		if y.num == tensorTypeShape {
			shape = &y
		} else if typ, err = r.elemType(y); err != nil {
			return 0, nil, err
		}
	}
	return typ, shape, nil
}

// valueType reads a TypeProto. What it leaves open is as known says, unless
// that is nil.
func (r *reader) valueType(x field, known tensor.Shape) (typ tensor.DType, shape tensor.Shape, err error) {
	typ, stated, err := r.tensorType(x)
	switch {
	case err != nil:
		return 0, nil, err
	case stated != nil:
		shape, err = r.shape(*stated, known)
	case known != nil:
		shape = known.Clone()
	default:
		err = unsupported("no shape is given: infer shapes (onnx.shape_inference.infer_shapes) or export it again with fixed ones")
	}
	if err != nil {
		return 0, nil, err
	}
	_, err = elements.Size(typ, shape)
	return typ, shape, err
}

// shape reads a TensorShapeProto, with open extents replaced.
func (r *reader) shape(x field, known tensor.Shape) (tensor.Shape, error) {
	m, err := r.message(&shapeSchema, x)
	if err != nil {
		return nil, err
	}
	if known != nil && int(m.count[shapeDim]) != len(known) {
		return nil, fmt.Errorf("shape %v is given, where the model has %d axes", known, m.count[shapeDim])
	}
	shape, err := r.newShape(int64(m.count[shapeDim]))
	if err != nil {
		return nil, err
	}
	for y, err := range m.fields() {
		if err != nil {
			return nil, err
		}
		axis := len(shape)
		d, symbol, err := r.extent(y, axis)
		if err != nil {
			return nil, err
		}
		if known != nil {
			if err := r.bind(symbol, known[axis]); err != nil {
				return nil, err
			}
			if d == open {
				d = known[axis]
			}
			if d != known[axis] {
				return nil, fmt.Errorf("shape %v is given, where axis %d of the model has %d", known, axis, d)
			}
		}
		size, bound := r.opt.Dims[symbol]
		switch {
		case d != open:
		case symbol == "":
			return nil, unsupported(fmt.Sprintf("axis %d has no extent: export the model with fixed shapes", axis))
		case !bound:
			if d = 1; len(r.open) < maxSymbols {
				r.open[symbol] = true
			}
		default:
			r.bound[symbol] = true
			d = size
		}
		shape = append(shape, d)
	}
	return shape, nil
}

// newShape returns a shape without axes that has room for n.
func (r *reader) newShape(n int64) (tensor.Shape, error) {
	if n > tensor.MaxRank {
		return nil, unsupported(fmt.Sprintf("%d axes, limit %d", n, tensor.MaxRank))
	}
	if err := r.charge(n, 8); err != nil {
		return nil, err
	}
	return make(tensor.Shape, 0, n), nil
}

// open stands for an extent that the file does not fix.
const open = math.MinInt

// extent reads a Dimension: its extent, or a symbol for it.
func (r *reader) extent(x field, axis int) (size int, symbol string, err error) {
	m, err := r.message(&dimSchema, x)
	if err != nil {
		return 0, "", err
	}
	if m.has(dimValue) && m.has(dimParam) {
		return 0, "", fmt.Errorf("axis %d has a fixed and a symbolic extent", axis)
	}
	for y, err := range m.fields() {
		if err != nil {
			return 0, "", err
		}
		switch y.num {
		case dimValue:
			v, err := r.int(y)
			return int(v), "", err
		case dimParam:
			symbol, err := r.text(y, graph.MaxName)
			return open, symbol, err
		}
	}
	return open, "", nil
}

// bind gives a symbolic dimension its size, which must always be the same.
func (r *reader) bind(symbol string, size int) error {
	if symbol == "" {
		return nil
	}
	if old, bound := r.opt.Dims[symbol]; bound && old != size {
		return fmt.Errorf("dimension %q is given as %d and as %d", symbol, old, size)
	}
	if err := r.charge(1, nameCost); err != nil {
		return err
	}
	if r.opt.Dims == nil {
		r.opt.Dims = map[string]int{}
	}
	r.opt.Dims[symbol] = size
	r.bound[symbol] = true
	return nil
}
