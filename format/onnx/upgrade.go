package onnx

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// upgrade brings g from the file's operator set to graph.Opset: it applies the
// rules of all editions between them.
func (r *reader) upgrade(g *graph.Graph, set int) error {
	u := &upgrader{reader: r, g: g, set: set}
	for i := range g.Nodes {
		if err := u.node(&g.Nodes[i]); err != nil {
			return fmt.Errorf("%s: %w", nodeLabel(i, &g.Nodes[i]), err)
		}
	}
	if n := len(g.Nodes) + len(u.added); n > graph.MaxNodes {
		return fmt.Errorf("the graph has %d nodes in operator set %d, limit %d", n, graph.Opset, graph.MaxNodes)
	}
	g.Nodes = append(g.Nodes, u.added...)
	return nil
}

// upgrader brings the nodes of a graph to graph.Opset.
type upgrader struct {
	*reader
	g      *graph.Graph
	set    int            // of the file
	added  []graph.Node   // in the form of graph.Opset
	names  map[string]int // all values, and the last number after each stem, once a new name is needed
	shapes map[string]tensor.Shape
}

// node applies the rules of one node. A rule may make it another operator,
// whose later editions then count.
func (u *upgrader) node(n *graph.Node) error {
	first := ""
	if len(n.Outputs) > 0 {
		first = n.Outputs[0]
	}
	for at := u.set; ; {
		list := editions[n.Op]
		i := slices.IndexFunc(list, func(e edition) bool { return e.since > at })
		if i < 0 {
			return nil
		}
		e := list[i]
		at = e.since
		if e.born {
			return fmt.Errorf("the operator is new in operator set %d and the model imports set %d: correct its opset_import", e.since, u.set)
		}
		for _, rule := range e.rules {
			w := &rewrite{upgrader: u, n: n, first: first}
			if rule(w); w.err != nil {
				return w.err
			}
		}
	}
}

// rule changes a node so that it means in one edition what it meant in the one
// before.
type rule func(*rewrite)

// rewrite changes a node and adds others and constants beside it. After an
// error it adds nothing more.
type rewrite struct {
	*upgrader
	n     *graph.Node
	first string // output, after which new values are named
	err   error
}

// fail notes an error, unless there is one.
func (w *rewrite) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// input returns the name of input at, empty if it is not given.
func (w *rewrite) input(at int) string {
	if at < len(w.n.Inputs) {
		return w.n.Inputs[at]
	}
	return ""
}

// setInput makes a value the input at, which must be free.
func (w *rewrite) setInput(at int, name string) {
	switch {
	case w.err != nil:
		return
	case w.input(at) != "":
		w.fail(fmt.Errorf("input %d where operator set %d takes %d", at, w.set, at))
		return
	}
	if err := w.charge(int64(max(at+1, len(w.n.Inputs))), 16); err != nil {
		w.fail(err)
		return
	}
	inputs := make([]string, max(at+1, len(w.n.Inputs)))
	copy(inputs, w.n.Inputs)
	inputs[at] = name
	w.n.Inputs = inputs
}

// take removes an attribute and returns it, or nil if there is none.
func (w *rewrite) take(name string, kinds ...graph.AttrKind) *graph.Attr {
	found := w.n.Attr(name)
	if found == nil {
		return nil
	}
	if a := *found; slices.Contains(kinds, a.Kind) {
		w.n.Attrs = slices.DeleteFunc(w.n.Attrs, func(b graph.Attr) bool { return b.Name == name })
		return &a
	}
	w.fail(fmt.Errorf("attribute %q is %v, but should be %v", name, found.Kind, kinds[0]))
	return nil
}

// put adds an attribute that must not be there.
func (w *rewrite) put(a graph.Attr) {
	if w.err != nil {
		return
	}
	if w.n.Attr(a.Name) != nil {
		w.fail(fmt.Errorf("attribute %q is not of operator set %d: correct the opset_import", a.Name, w.set))
		return
	}
	if err := w.charge(int64(len(w.n.Attrs)+1), 2*attrCost); err != nil {
		w.fail(err)
		return
	}
	at, _ := slices.BinarySearchFunc(w.n.Attrs, a.Name, func(b graph.Attr, name string) int { return strings.Compare(b.Name, name) })
	w.n.Attrs = slices.Insert(w.n.Attrs, at, a)
}

// hold returns the name of a new initializer.
func (w *rewrite) hold(what string, t *tensor.Tensor) string {
	if w.err != nil {
		return ""
	}
	if err := w.charge(1, 3*constCost+int64(t.Len())*8); err != nil {
		w.fail(err)
		return ""
	}
	name := w.fresh(what)
	w.g.Consts = append(w.g.Consts, graph.Const{Name: name, Tensor: t})
	return name
}

// ints returns the name of a new list of integers.
func (w *rewrite) ints(what string, v ...int64) string {
	return w.hold(what, tensor.Must(tensor.From(tensor.Shape{len(v)}, v)))
}

// op returns the output of a new node.
func (w *rewrite) op(op string, inputs []string, attrs ...graph.Attr) string {
	out := w.fresh(strings.ToLower(op))
	w.add(out, op, inputs, attrs)
	return out
}

// swap gives the node's output at another name, and its old one to a new node
// of that operator, which takes the output and the given values.
func (w *rewrite) swap(at int, op string, more []string, attrs ...graph.Attr) {
	old := w.n.Outputs[at]
	w.n.Outputs[at] = w.fresh(fmt.Sprint("output", at))
	w.add(old, op, append([]string{w.n.Outputs[at]}, more...), attrs)
}

func (w *rewrite) add(out, op string, inputs []string, attrs []graph.Attr) {
	if w.err != nil {
		return
	}
	// The list of nodes grows by doubling, and is copied once at the end.
	if err := w.charge(4, nodeCost+nameCost+int64(len(inputs))*16+int64(len(attrs))*attrCost); err != nil {
		w.fail(err)
		return
	}
	w.added = append(w.added, graph.Node{Name: out, Op: op, Inputs: inputs, Outputs: []string{out}, Attrs: attrs})
}

// fresh returns a name for a new value, after the node's first output.
func (w *rewrite) fresh(what string) string {
	if w.err != nil {
		return ""
	}
	if w.names == nil {
		if err := w.collect(); err != nil {
			w.fail(err)
			return ""
		}
	}
	if w.first == "" {
		w.fail(errors.New("the node has no first output"))
		return ""
	}
	stem := w.first + "." + what
	name := stem
	if k, used := w.names[stem]; used {
		for ; used; k++ {
			name = fmt.Sprintf("%s.%d", stem, k+2)
			_, used = w.names[name]
		}
		w.names[stem] = k
	}
	if len(name) > graph.MaxName {
		w.fail(fmt.Errorf("the name %q is too long to add %q to: shorten it", w.first, what))
		return ""
	}
	if err := w.charge(1, nameCost+2*int64(len(name))); err != nil {
		w.fail(err)
		return ""
	}
	w.names[name] = 0
	return name
}

// collect fills names with every value of the graph.
func (u *upgrader) collect() error {
	n := len(u.g.Inputs) + len(u.g.Consts)
	for i := range u.g.Nodes {
		n += len(u.g.Nodes[i].Outputs)
	}
	if err := u.charge(int64(n), nameCost); err != nil {
		return err
	}
	u.names = make(map[string]int, n)
	for _, v := range u.g.Inputs {
		u.names[v.Name] = 0
	}
	for _, c := range u.g.Consts {
		u.names[c.Name] = 0
	}
	for i := range u.g.Nodes {
		for _, o := range u.g.Nodes[i].Outputs {
			u.names[o] = 0
		}
	}
	return nil
}

// empty reports whether a value is a constant without elements.
func (u *upgrader) empty(name string) (bool, error) {
	if u.shapes == nil {
		if err := u.charge(int64(len(u.g.Consts)+len(u.g.Nodes)), nameCost); err != nil {
			return false, err
		}
		u.shapes = map[string]tensor.Shape{}
		for _, c := range u.g.Consts {
			u.shapes[c.Name] = c.Tensor.Shape
		}
		for i := range u.g.Nodes {
			n := &u.g.Nodes[i]
			if a := n.Attr("value"); n.Op == "Constant" && a != nil && a.Tensor != nil && len(n.Outputs) == 1 {
				u.shapes[n.Outputs[0]] = a.Tensor.Shape
			}
		}
	}
	s, known := u.shapes[name]
	return known && s.Elements() == 0, nil
}
