package onnx

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tally-network/tally/core/graph"
)

func nodeLabel(i int, n *graph.Node) string {
	return fmt.Sprintf("node %d %q (%s)", i, n.Name, n.Op)
}

// controls are the operators that hold graphs.
var controls = []string{"If", "Loop", "Scan"}

// called is a node, which may call a function.
type called struct {
	graph.Node
	functionKey
}

// place reads a node into g, or what the function gives that it calls.
func (r *reader) place(g *graph.Graph, x field) error {
	r.at++
	c, err := r.node(x)
	if err != nil {
		return err
	}
	switch f := r.functions[c.functionKey]; {
	case f != nil:
		return r.call(g, &c.Node, f)
	case c.overload != "":
		return unsupported("names an overload, which only functions have, and the model has no such function")
	case c.domain != "":
		return unsupported(fmt.Sprintf("operator domain %q: only the default domain is supported%s", c.domain, instead(c.domain)))
	}
	g.Nodes = append(g.Nodes, c.Node)
	return nil
}

// instead says how a model does without a domain.
func instead(domain string) string {
	switch domain {
	case "ai.onnx.ml":
		return "; hummingbird-ml turns trees and linear models of scikit-learn, XGBoost and LightGBM into tensor operators"
	case "com.microsoft":
		return "; export the model again without the optimizations of onnxruntime"
	}
	return ""
}

func (r *reader) node(x field) (n called, err error) {
	m, err := r.message(&nodeSchema, x)
	if err != nil {
		return n, err
	}
	if err := r.charge(int64(m.count[nodeInput]), 16); err != nil {
		return n, err
	}
	if err := r.charge(int64(m.count[nodeOutput]), 16+nameCost); err != nil {
		return n, err
	}
	if err := r.charge(int64(m.count[nodeAttr]), attrCost); err != nil {
		return n, err
	}
	n.Inputs = room[string](m.count[nodeInput])
	n.Outputs = room[string](m.count[nodeOutput])
	n.Attrs = room[graph.Attr](m.count[nodeAttr])
	for y, err := range m.fields() {
		if err != nil {
			return n, err
		}
		switch y.num {
		case nodeInput:
			err = add(&n.Inputs, y, r.name)
		case nodeOutput:
			err = add(&n.Outputs, y, r.name)
		case nodeName:
			n.Name, err = r.name(y)
		case nodeOp:
			n.Op, err = r.name(y)
		case nodeDomain:
			n.domain, err = r.domain(y)
		case nodeOverload:
			n.overload, err = r.name(y)
		case nodeAttr:
			err = add(&n.Attrs, y, r.attr)
		}
		if err != nil {
			return n, err
		}
	}
	n.name = n.Op
	if _, calls := r.functions[n.functionKey]; !calls && !slices.Contains(controls, n.Op) {
		for _, a := range n.Attrs {
			if a.Kind == graph.AttrGraph {
				return n, unsupported(fmt.Sprintf("attribute %q is a graph, which %s alone may have", a.Name, strings.Join(controls, ", ")))
			}
		}
	}
	slices.SortFunc(n.Attrs, func(a, b graph.Attr) int { return strings.Compare(a.Name, b.Name) })
	return n, r.capture(&n.Node)
}

// domain reads a name of a domain: empty for the default one.
func (r *reader) domain(x field) (string, error) {
	s, err := r.name(x)
	if defaultDomain(s) {
		s = ""
	}
	return s, err
}

// room returns an empty slice for n items, nil for none.
func room[T any](n int32) []T {
	if n == 0 {
		return nil
	}
	return make([]T, 0, n)
}

func (r *reader) name(x field) (string, error) { return r.text(x, graph.MaxName) }

// attrKinds are the kinds of ONNX's AttributeProto, by number: their names, and
// the field that holds the value if the kind is supported.
var attrKinds = []struct {
	name  string
	field protowire.Number
}{
	1: {"FLOAT", attrFloat}, 2: {"INT", attrInt}, 3: {"STRING", attrString}, 4: {"TENSOR", attrTensor},
	5: {"GRAPH", attrGraph}, 6: {"FLOATS", attrFloats}, 7: {"INTS", attrInts}, 8: {"STRINGS", attrStrings}, 9: {"TENSORS", 0},
	10: {"GRAPHS", 0}, 11: {"SPARSE_TENSOR", 0}, 12: {"SPARSE_TENSORS", 0}, 13: {"TYPE_PROTO", 0}, 14: {"TYPE_PROTOS", 0},
}

// attrMeta are the fields of an attribute that are not its value.
var attrMeta = []protowire.Number{attrName, attrKind, attrRef, 13}

func (r *reader) attr(x field) (a graph.Attr, err error) {
	m, err := r.message(&attrSchema, x)
	if err != nil {
		return a, err
	}
	var kind int64
	for y, err := range m.fields() {
		if err != nil {
			return a, err
		}
		switch y.num {
		case attrRef:
			a.String, err = r.name(y)
		case attrName:
			a.Name, err = r.name(y)
		case attrKind:
			kind, err = r.int(y)
		}
		if err != nil {
			return a, err
		}
	}
	if a.String != "" { // the value is that of an attribute of the function
		if !r.scope.function {
			return a, fmt.Errorf("attribute %q: refers to an attribute of a function, outside of one", a.Name)
		}
		a.Kind, a.Int = attrOfFunction, kind
		return a, nil
	}
	if err := r.attrValue(&a, &m, kind); err != nil {
		return a, fmt.Errorf("attribute %q: %w", a.Name, err)
	}
	return a, nil
}

// attrValue reads the value of the given kind, and refuses any other.
func (r *reader) attrValue(a *graph.Attr, m *message, kind int64) error {
	if kind < 1 || kind >= int64(len(attrKinds)) {
		return fmt.Errorf("unknown kind %d", kind)
	}
	k := attrKinds[kind]
	if k.field == 0 {
		return unsupported("attributes of kind " + k.name + " are not supported")
	}
	for num := protowire.Number(1); num <= maxField; num++ {
		if m.has(num) && num != k.field && !slices.Contains(attrMeta, num) {
			return fmt.Errorf("kind %s with a value in field %s", k.name, attrSchema.fields[num].name)
		}
	}
	a.Kind = graph.AttrKind(kind)
	switch a.Kind {
	case graph.AttrInts:
		return r.ints(a, m)
	case graph.AttrFloats:
		return r.floats(a, m)
	case graph.AttrStrings:
		return r.strings(a, m)
	case graph.AttrTensor, graph.AttrGraph:
		if !m.has(k.field) {
			return fmt.Errorf("no %s is given", strings.ToLower(k.name))
		}
	}
	for y, err := range m.fields() {
		if err != nil {
			return err
		}
		switch y.num {
		case attrInt:
			a.Int, err = r.int(y)
		case attrFloat:
			a.Float, err = r.float(y.at)
		case attrString:
			a.String, err = r.blob(y, windowSize)
		case attrTensor:
			_, a.Tensor, err = r.tensor(y)
		case attrGraph:
			a.Graph, err = r.graph(y, scope{set: r.set, depth: r.depth + 1, function: r.scope.function})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) ints(a *graph.Attr, m *message) error {
	n, err := r.wide(m, attrInts, 8)
	if err != nil {
		return err
	}
	if err := r.charge(n/8, 8); err != nil {
		return err
	}
	a.Ints = make([]int64, 0, n/8)
	for v, err := range m.varints(attrInts) {
		if err != nil {
			return err
		}
		a.Ints = append(a.Ints, int64(v))
	}
	return nil
}

func (r *reader) floats(a *graph.Attr, m *message) error {
	n, err := m.total(attrFloats)
	if err != nil {
		return err
	}
	if err := r.charge(n, 1); err != nil {
		return err
	}
	a.Floats = make([]float32, 0, n/4)
	for x, err := range m.fields() {
		if err != nil {
			return err
		}
		for at := x.at; x.num == attrFloats && at < x.end; at += 4 {
			v, err := r.float(at)
			if err != nil {
				return err
			}
			a.Floats = append(a.Floats, v)
		}
	}
	return nil
}

func (r *reader) strings(a *graph.Attr, m *message) error {
	n := m.count[attrStrings]
	if err := r.charge(int64(n), 32); err != nil {
		return err
	}
	a.Strings = make([]string, 0, n)
	for x, err := range m.fields() {
		if err != nil {
			return err
		}
		if x.num != attrStrings {
			continue
		}
		if err := add(&a.Strings, x, func(x field) (string, error) { return r.blob(x, windowSize) }); err != nil {
			return err
		}
	}
	return nil
}

func (f *file) float(at int64) (float32, error) {
	b, err := f.peek(at, 4)
	if err != nil {
		return 0, err
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(b)), nil
}
