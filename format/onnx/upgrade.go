package onnx

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// rule changes a node so that it means under graph.Opset what it meant under
// the file's operator set.
type rule func(u *upgrader, n *graph.Node, since int) error

// upgrader brings the nodes of a graph from one operator set to graph.Opset.
type upgrader struct {
	*reader
	g     *graph.Graph
	set   int
	names map[string]bool // all values, once a new one is needed
}

// upgrade applies the rules of all editions between the file's operator set
// and graph.Opset.
func (r *reader) upgrade(g *graph.Graph, set int) error {
	u := &upgrader{reader: r, g: g, set: set}
	after, upTo := min(set, graph.Opset), max(set, graph.Opset)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		for _, e := range editions[n.Op] {
			if e.rule == nil || e.since <= after || e.since > upTo {
				continue
			}
			if err := e.rule(u, n, e.since); err != nil {
				return fmt.Errorf("%s: %w", nodeLabel(i, n), err)
			}
		}
	}
	return nil
}

// introduced is for operators that the older of the two sets does not have.
func introduced(u *upgrader, n *graph.Node, since int) error {
	if since > u.set {
		return fmt.Errorf("the operator is new in operator set %d and the model imports set %d: correct its opset_import", since, u.set)
	}
	return unsupported(fmt.Sprintf("the operator is new in operator set %d, programs are held in set %d: export the model with set %d", since, graph.Opset, graph.Opset))
}

// notUpgraded is for changes that take more than the node to follow.
func notUpgraded(why string) rule {
	return func(u *upgrader, n *graph.Node, since int) error {
		return unsupported(fmt.Sprintf("changed between operator sets %d and %d: %s", u.set, graph.Opset, why))
	}
}

// withoutAttr is for an attribute that graph.Opset does not know.
func withoutAttr(name string) rule {
	return func(u *upgrader, n *graph.Node, since int) error {
		if n.Attr(name) == nil {
			return nil
		}
		return unsupported(fmt.Sprintf("attribute %q is new in operator set %d, programs are held in set %d: export the model with set %d", name, since, graph.Opset, graph.Opset))
	}
}

// oldDefault states the value that an absent attribute had.
func oldDefault(a graph.Attr) rule {
	return func(u *upgrader, n *graph.Node, since int) error {
		if n.Attr(a.Name) != nil {
			return nil
		}
		return u.addAttr(n, a)
	}
}

// renamedValue gives values of a text attribute their new names.
func renamedValue(attr string, names map[string]string) rule {
	return func(u *upgrader, n *graph.Node, since int) error {
		if a := n.Attr(attr); a != nil && names[a.String] != "" {
			a.String = names[a.String]
		}
		return nil
	}
}

// equalParts states how many outputs Split has where no sizes are given.
func equalParts(u *upgrader, n *graph.Node, since int) error {
	if len(n.Inputs) > 1 && n.Inputs[1] != "" {
		return nil
	}
	return u.addAttr(n, graph.Attr{Name: "num_outputs", Kind: graph.AttrInt, Int: int64(len(n.Outputs))})
}

// inferenceOnly is for BatchNormalization, which once trained by having more
// than one output, with other rules for the running statistics.
func inferenceOnly(u *upgrader, n *graph.Node, since int) error {
	for _, o := range n.Outputs[min(1, len(n.Outputs)):] {
		if o != "" {
			return unsupported("outputs beyond the first had another meaning before operator set 14: export the model in inference mode or with set 14 or later")
		}
	}
	return nil
}

// attrToInput turns an attribute of integers into the input at place at. An
// absent one stays absent unless it stood for the scalar missing.
func attrToInput(attr string, at int, missing ...int64) rule {
	return func(u *upgrader, n *graph.Node, since int) error {
		if len(n.Inputs) > at {
			return fmt.Errorf("%d inputs where operator set %d takes %d", len(n.Inputs), u.set, at)
		}
		var t *tensor.Tensor
		var err error
		switch a := n.Attr(attr); {
		case a != nil && a.Kind == graph.AttrInts:
			t, err = tensor.From(tensor.Shape{len(a.Ints)}, a.Ints)
		case a != nil && a.Kind == graph.AttrInt:
			t = tensor.Scalar(a.Int)
		case a != nil:
			err = fmt.Errorf("attribute %q is not of integers", attr)
		case len(missing) > 0:
			t = tensor.Scalar(missing[0])
		default:
			return nil
		}
		if err != nil {
			return err
		}
		n.Attrs = slices.DeleteFunc(n.Attrs, func(a graph.Attr) bool { return a.Name == attr })
		return u.addInput(n, attr, at, t)
	}
}

func (u *upgrader) addAttr(n *graph.Node, a graph.Attr) error {
	if n.Attr(a.Name) != nil {
		return fmt.Errorf("attribute %q is not of operator set %d: correct the opset_import", a.Name, u.set)
	}
	if err := u.charge(int64(len(n.Attrs)+1), 2*attrCost); err != nil {
		return err
	}
	at, _ := slices.BinarySearchFunc(n.Attrs, a.Name, func(b graph.Attr, name string) int { return strings.Compare(b.Name, name) })
	n.Attrs = slices.Insert(n.Attrs, at, a)
	return nil
}

// addInput makes t an initializer and the input of n at place at.
func (u *upgrader) addInput(n *graph.Node, what string, at int, t *tensor.Tensor) error {
	if err := u.charge(1, 3*constCost+int64(t.Len())*8); err != nil {
		return err
	}
	name, err := u.fresh(n, what)
	if err != nil {
		return err
	}
	inputs := make([]string, at+1)
	copy(inputs, n.Inputs)
	inputs[at] = name
	n.Inputs = inputs
	u.g.Consts = append(u.g.Consts, graph.Const{Name: name, Tensor: t})
	return nil
}

// fresh returns a name for a new value, after the node's first output.
func (u *upgrader) fresh(n *graph.Node, what string) (string, error) {
	if u.names == nil {
		if err := u.collect(); err != nil {
			return "", err
		}
	}
	if len(n.Outputs) == 0 {
		return "", errors.New("the node has no output")
	}
	stem := n.Outputs[0]
	name := stem + "." + what
	for i := 2; u.names[name]; i++ {
		name = fmt.Sprintf("%s.%s.%d", stem, what, i)
	}
	if len(name) > graph.MaxName {
		return "", fmt.Errorf("the name %q is too long to add %q to: shorten it", stem, what)
	}
	u.names[name] = true
	return name, nil
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
	u.names = make(map[string]bool, n)
	for _, v := range u.g.Inputs {
		u.names[v.Name] = true
	}
	for _, c := range u.g.Consts {
		u.names[c.Name] = true
	}
	for i := range u.g.Nodes {
		for _, o := range u.g.Nodes[i].Outputs {
			u.names[o] = true
		}
	}
	return nil
}
