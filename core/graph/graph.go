package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/tensor"
)

// Opset is the version of ONNX's default operator set in whose forms graphs are
// held; nodes of older versions are upgraded when they are read.
const Opset = 27

// Limits on a graph, checked when one is read.
const (
	MaxNodes = 1 << 20
	MaxName  = 512
)

// Value is a named tensor type.
type Value struct {
	Name  string
	Type  tensor.DType
	Shape tensor.Shape
}

// Const is a named tensor that the graph itself holds (an initializer).
type Const struct {
	Name   string
	Tensor *tensor.Tensor
}

// Node applies an operator of ONNX's default domain. An empty input name
// stands for an optional input that is not given.
type Node struct {
	Name            string
	Op              string
	Inputs, Outputs []string
	Attrs           []Attr // ascending by name
}

// Attr is a named attribute. Exactly one kind of value is set, as Kind says.
type Attr struct {
	Name    string
	Kind    AttrKind
	Int     int64
	Float   float32
	String  string
	Ints    []int64
	Floats  []float32
	Strings []string
	Tensor  *tensor.Tensor
	Graph   *Graph // in canonical order; Int of its last inputs stand for the last inputs of the node: values that it uses from around it
}

// AttrKind says which value an attribute has. The numbers are those of ONNX's
// AttributeProto.
type AttrKind uint8

// The kinds of attribute.
const (
	AttrFloat   AttrKind = 1
	AttrInt     AttrKind = 2
	AttrString  AttrKind = 3
	AttrTensor  AttrKind = 4
	AttrGraph   AttrKind = 5
	AttrFloats  AttrKind = 6
	AttrInts    AttrKind = 7
	AttrStrings AttrKind = 8
)

// Graph is a static ONNX graph.
type Graph struct {
	Name    string
	Inputs  []Value
	Outputs []Value
	Consts  []Const
	Nodes   []Node // in canonical order once Canonical has run
}

// Attr returns the attribute called name, or nil.
func (n *Node) Attr(name string) *Attr {
	for i := range n.Attrs {
		if n.Attrs[i].Name == name {
			return &n.Attrs[i]
		}
	}
	return nil
}

// Const returns the initializer called name, or nil.
func (g *Graph) Const(name string) *tensor.Tensor {
	for _, c := range g.Consts {
		if c.Name == name {
			return c.Tensor
		}
	}
	return nil
}

// Canonical returns g with its nodes in canonical order: a depth-first walk
// from the outputs, in order, visiting each node's inputs in order and then
// the node. Initializers are sorted by name. Nodes and initializers that no
// output needs are dropped. It fails
// on a cycle, on a value defined twice, and on one not defined.
func (g *Graph) Canonical() (*Graph, error) {
	defs, err := g.definitions()
	if err != nil {
		return nil, err
	}
	out := &Graph{Name: g.Name, Inputs: g.Inputs, Outputs: g.Outputs}
	w := walk{g: g, defs: defs, mark: make([]uint8, len(g.Nodes)), needed: map[string]bool{}, order: make([]Node, 0, len(g.Nodes))}
	for _, o := range g.Outputs {
		if err := w.visit(o.Name); err != nil {
			return nil, fmt.Errorf("output %q: %w", o.Name, err)
		}
	}
	out.Nodes = w.order
	for _, c := range g.Consts {
		if w.needed[c.Name] {
			out.Consts = append(out.Consts, c)
		}
	}
	slices.SortFunc(out.Consts, func(a, b Const) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// source says where a value comes from: node ≥ 0, or an input or initializer.
const fromOutside = -1

func (g *Graph) definitions() (map[string]int, error) {
	defs := make(map[string]int, len(g.Nodes)+len(g.Consts))
	define := func(name string, by int) error {
		if _, twice := defs[name]; twice {
			return fmt.Errorf("value %q is defined twice", name)
		}
		defs[name] = by
		return nil
	}
	for _, v := range g.Inputs {
		if err := define(v.Name, fromOutside); err != nil {
			return nil, err
		}
	}
	for _, c := range g.Consts {
		if err := define(c.Name, fromOutside); err != nil {
			return nil, err
		}
	}
	for i, n := range g.Nodes {
		for _, o := range n.Outputs {
			if o == "" {
				continue
			}
			if err := define(o, i); err != nil {
				return nil, err
			}
		}
	}
	return defs, nil
}

type walk struct {
	g      *Graph
	defs   map[string]int
	mark   []uint8 // 0 new, 1 on the path, 2 done
	needed map[string]bool
	order  []Node
}

// visit walks iteratively: a hostile graph may be a million nodes deep.
func (w *walk) visit(name string) error {
	type frame struct{ node, next int }
	var stack []frame
	enter := func(name string) error {
		by, ok := w.defs[name]
		switch {
		case !ok:
			return fmt.Errorf("value %q is not defined", name)
		case by == fromOutside:
			w.needed[name] = true
			return nil
		case w.mark[by] == 2:
			return nil
		case w.mark[by] == 1:
			return fmt.Errorf("value %q depends on itself", name)
		}
		w.mark[by] = 1
		stack = append(stack, frame{by, 0})
		return nil
	}
	if err := enter(name); err != nil {
		return err
	}
	for len(stack) > 0 {
		f := &stack[len(stack)-1]
		n := &w.g.Nodes[f.node]
		if f.next == len(n.Inputs) {
			w.mark[f.node] = 2
			w.order = append(w.order, *n)
			stack = stack[:len(stack)-1]
			continue
		}
		in := n.Inputs[f.next]
		f.next++
		if in == "" {
			continue
		}
		if err := enter(in); err != nil {
			return fmt.Errorf("node %q (%s): %w", n.Name, n.Op, err)
		}
	}
	return nil
}
