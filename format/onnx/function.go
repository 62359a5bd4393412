package onnx

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
)

// Functions of a model are put in the place of the nodes that call them. Each
// is read once, when it is first called, with the functions that it calls in
// place; every node that a call gives is charged.

// functionKey is what nodes call a function by.
type functionKey struct{ domain, name, overload string }

type function struct {
	functionKey
	at       field
	begun    bool
	body     *graph.Graph           // nil until it is read
	defaults map[string]*graph.Attr // of its attributes; nil if one has none
}

// attrOfFunction is the kind of an attribute whose value is that of the
// function's attribute that String names, and whose own kind is Int. There is
// none left when a call is in place.
const attrOfFunction graph.AttrKind = 255

// function notes where a function stands.
func (r *reader) function(x field) error {
	m, err := r.message(&functionSchema, x)
	if err != nil {
		return err
	}
	if err := r.charge(1, 4*nameCost); err != nil {
		return err
	}
	f := &function{at: x}
	for y, err := range m.fields() {
		if err != nil {
			return err
		}
		switch y.num {
		case functionName:
			f.name, err = r.name(y)
		case functionDomain:
			f.domain, err = r.domain(y)
		case functionOverload:
			f.overload, err = r.name(y)
		}
		if err != nil {
			return err
		}
	}
	if r.functions == nil {
		r.functions = map[functionKey]*function{}
	}
	if r.functions[f.functionKey] != nil {
		return fmt.Errorf("function %q of domain %q is defined twice", f.name, f.domain)
	}
	r.functions[f.functionKey] = f
	return nil
}

// read reads the function, unless that is done.
func (r *reader) read(f *function) error {
	switch {
	case f.body != nil:
		return nil
	case f.begun:
		return errors.New("it calls itself")
	}
	f.begun = true
	m, err := r.message(&functionSchema, f.at)
	if err != nil {
		return err
	}
	s := scope{set: r.set, depth: r.depth + 1, function: true}
	var set int64
	for x, err := range m.fields() {
		if err == nil && x.num == functionOpset {
			err = r.opset(x, &set)
		}
		if err != nil {
			return err
		}
	}
	if set != 0 {
		s.set = int(set)
	}
	if s.set < OldestSet || s.set > NewestSet {
		return unsupported(fmt.Sprintf("operator set %d: sets %d to %d are read", s.set, OldestSet, NewestSet))
	}
	return r.within(s, func() error { return r.define(f, &m) })
}

func (r *reader) define(f *function, m *message) error {
	for _, item := range []struct{ num, cost int64 }{
		{functionNode, nodeCost}, {functionInput, valueCost}, {functionOutput, valueCost}, {functionAttr, nameCost}, {functionDefault, nameCost + attrCost},
	} {
		if err := r.charge(int64(m.count[item.num]), item.cost); err != nil {
			return err
		}
	}
	g := &graph.Graph{Name: f.name, Nodes: make([]graph.Node, 0, m.count[functionNode])}
	f.defaults = map[string]*graph.Attr{}
	for x, err := range m.fields() {
		if err != nil {
			return err
		}
		switch x.num {
		case functionInput:
			err = add(&g.Inputs, x, r.named)
		case functionOutput:
			err = add(&g.Outputs, x, r.named)
		case functionAttr:
			var name string
			name, err = r.name(x)
			f.defaults[name] = nil
		case functionDefault:
			var a graph.Attr
			a, err = r.attr(x)
			f.defaults[a.Name] = &a
		case functionNode:
			if err = r.place(g, x); err != nil {
				err = fmt.Errorf("node %d: %w", r.at-1, err)
			}
		}
		if err != nil {
			return err
		}
	}
	f.body = g
	return r.complete(g)
}

func (r *reader) named(x field) (graph.Value, error) {
	name, err := r.name(x)
	return graph.Value{Name: name}, err
}

// call puts what a function computes into the scope, in place of a node.
func (r *reader) call(g *graph.Graph, n *graph.Node, f *function) error {
	if err := r.inline(g, n, f); err != nil {
		return fmt.Errorf("function %q: %w", f.name, err)
	}
	return nil
}

func (r *reader) inline(g *graph.Graph, n *graph.Node, f *function) error {
	if err := r.read(f); err != nil {
		return err
	}
	if len(n.Inputs) > len(f.body.Inputs) || len(n.Outputs) > len(f.body.Outputs) {
		return fmt.Errorf("%d inputs and %d outputs, where it has %d and %d", len(n.Inputs), len(n.Outputs), len(f.body.Inputs), len(f.body.Outputs))
	}
	for _, a := range n.Attrs {
		if _, has := f.defaults[a.Name]; !has {
			return fmt.Errorf("it has no attribute %q", a.Name)
		}
	}
	r.calls++
	// Lists grow by doubling, and are copied once.
	if err := r.charge(int64(4*len(f.body.Nodes)+1), nodeCost); err != nil {
		return err
	}
	c := &inliner{reader: r, f: f, n: n, names: map[string]string{"": ""}, prefix: fmt.Sprintf("%s.%d.", f.name, r.calls)}
	if err := r.charge(int64(len(f.body.Inputs)+len(f.body.Outputs)), 2*nameCost); err != nil {
		return err
	}
	for i, v := range f.body.Inputs {
		c.names[v.Name] = ""
		if i < len(n.Inputs) {
			c.names[v.Name] = n.Inputs[i]
		}
	}
	for i, v := range f.body.Outputs {
		if i >= len(n.Outputs) || n.Outputs[i] == "" {
			continue
		}
		if from, given := c.names[v.Name]; given { // an input, or an output for the second time
			r.inlined = append(r.inlined, graph.Node{Op: "Identity", Inputs: []string{from}, Outputs: n.Outputs[i : i+1]})
		} else {
			c.names[v.Name] = n.Outputs[i]
		}
	}
	for _, k := range f.body.Consts {
		if err := r.charge(1, 3*constCost); err != nil {
			return err
		}
		g.Consts = append(g.Consts, graph.Const{Name: c.rename([]string{k.Name})[0], Tensor: k.Tensor})
	}
	for _, inner := range f.body.Nodes {
		inner.Inputs, inner.Outputs = c.rename(inner.Inputs), c.rename(inner.Outputs)
		inner.Attrs = c.bind(inner.Attrs)
		r.inlined = append(r.inlined, inner)
	}
	return c.err
}

// inliner gives names and attributes of a function their meaning in a call.
type inliner struct {
	*reader
	f      *function
	n      *graph.Node
	names  map[string]string
	prefix string
	err    error
}

func (c *inliner) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

func (c *inliner) rename(list []string) []string {
	if err := c.charge(int64(len(list)), 16); err != nil {
		c.fail(err)
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		name, known := c.names[s]
		if !known {
			if name = c.prefix + s; len(name) > graph.MaxName {
				c.fail(fmt.Errorf("the name %.100q… is too long, shorten it", name))
			}
			if err := c.charge(1, 2*nameCost+int64(len(name))); err != nil {
				c.fail(err)
				return nil
			}
			c.names[s] = name
		}
		out[i] = name
	}
	return out
}

// bind returns the attributes of a node with the values that the call gives.
func (c *inliner) bind(attrs []graph.Attr) (out []graph.Attr) {
	if err := c.charge(int64(len(attrs)), attrCost); err != nil {
		c.fail(err)
		return nil
	}
	for _, a := range attrs {
		switch a.Kind {
		case graph.AttrGraph:
			a.Graph = c.bindGraph(a.Graph)
		case attrOfFunction:
			given, fallback := c.n.Attr(a.String), c.f.defaults[a.String]
			if given == nil {
				given = fallback
			}
			switch {
			case given == nil: // the operator's own default
				continue
			case given.Kind == attrOfFunction && fallback != nil:
				c.fail(unsupported(fmt.Sprintf("attribute %q has a default in one function and may have another around it", a.String)))
			case graph.AttrKind(a.Int) != given.Kind && (given.Kind != attrOfFunction || given.Int != a.Int):
				c.fail(fmt.Errorf("attribute %q is %v, where kind %d is wanted", a.String, given.Kind, a.Int))
			}
			name := a.Name
			a = *given
			a.Name = name
		}
		out = append(out, a)
	}
	return out
}

func (c *inliner) bindGraph(g *graph.Graph) *graph.Graph {
	if err := c.charge(int64(len(g.Nodes)+1), nodeCost); err != nil {
		c.fail(err)
		return g
	}
	copied := *g
	copied.Nodes = slices.Clone(g.Nodes)
	for i := range copied.Nodes {
		copied.Nodes[i].Attrs = c.bind(copied.Nodes[i].Attrs)
	}
	return &copied
}

// capture makes what the graphs in a node use from around them inputs of the
// node, and of each of the graphs.
func (r *reader) capture(n *graph.Node) error {
	var free []string
	seen := map[string]bool{}
	declared := 0
	for i := range n.Attrs {
		g := n.Attrs[i].Graph
		if n.Attrs[i].Kind != graph.AttrGraph {
			continue
		}
		declared = max(declared, len(g.Inputs))
		names, err := r.free(g)
		if err != nil {
			return err
		}
		for _, name := range names {
			if !seen[name] {
				seen[name] = true
				free = append(free, name)
			}
		}
	}
	if declared == 0 && len(free) == 0 && !slices.ContainsFunc(n.Attrs, func(a graph.Attr) bool { return a.Kind == graph.AttrGraph }) {
		return nil
	}
	if err := r.charge(int64(declared+len(free)), valueCost+32); err != nil {
		return err
	}
	for len(n.Inputs) < declared {
		n.Inputs = append(n.Inputs, "")
	}
	n.Inputs = append(n.Inputs, free...)
	for i := range n.Attrs {
		a := &n.Attrs[i]
		if a.Kind != graph.AttrGraph {
			continue
		}
		if err := r.charge(int64(len(free)), 2*valueCost); err != nil {
			return err
		}
		a.Int = int64(len(free))
		for _, name := range free {
			a.Graph.Inputs = append(a.Graph.Inputs, graph.Value{Name: name})
		}
		var err error
		if a.Graph, err = a.Graph.Canonical(); err != nil {
			return fmt.Errorf("attribute %q: %w", a.Name, err)
		}
	}
	return nil
}

// free returns the names that g uses and does not define, in order of use.
func (r *reader) free(g *graph.Graph) (free []string, err error) {
	n := len(g.Inputs) + len(g.Consts) + len(g.Outputs)
	for i := range g.Nodes {
		n += len(g.Nodes[i].Inputs) + len(g.Nodes[i].Outputs)
	}
	if err := r.charge(int64(n), nameCost+32); err != nil {
		return nil, err
	}
	known := map[string]bool{"": true}
	for _, v := range g.Inputs {
		known[v.Name] = true
	}
	for _, k := range g.Consts {
		known[k.Name] = true
	}
	for i := range g.Nodes {
		for _, o := range g.Nodes[i].Outputs {
			known[o] = true
		}
	}
	use := func(name string) {
		if !known[name] {
			known[name] = true
			free = append(free, name)
		}
	}
	for i := range g.Nodes {
		for _, in := range g.Nodes[i].Inputs {
			use(in)
		}
	}
	for _, o := range g.Outputs {
		use(o.Name)
	}
	return free, nil
}
