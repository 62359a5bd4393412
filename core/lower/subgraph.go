package lower

import (
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
)

// Graphs that nodes hold: branches and bodies of loops. The inputs of such a node
// that its graphs use from around them follow the others.

// holdsGraph reports whether the operator has graphs among its attributes.
func (c *Call) holdsGraph() bool {
	return slices.ContainsFunc(c.op.Attrs, func(a graph.Attr) bool { return a.Kind == graph.AttrGraph })
}

// Flatten returns g with what nodes that hold graphs come to in their place.
func (t Table) Flatten(g *graph.Graph) (*graph.Graph, error) {
	if !slices.ContainsFunc(g.Nodes, func(n graph.Node) bool {
		return slices.ContainsFunc(n.Attrs, func(a graph.Attr) bool { return a.Kind == graph.AttrGraph })
	}) {
		return g, nil
	}
	typed, err := t.infer(g, FP32, flattened)
	if err != nil {
		return nil, err
	}
	l := typed.l
	flat := &graph.Graph{Name: g.Name, Inputs: typed.Inputs, Outputs: typed.Outputs, Consts: l.names.Graph().Consts, Nodes: l.flat}
	for _, o := range g.Outputs {
		if inner := l.resolve(o.Name); inner != o.Name {
			flat.Nodes = append(flat.Nodes, graph.Node{Op: "Identity", Inputs: []string{inner}, Outputs: []string{o.Name}})
		}
	}
	return flat.Canonical()
}

// Body returns a graph that the node holds as the attribute called name, and how
// many inputs it has of its own.
func (c *Call) Body(name string) (g *graph.Graph, own int, err error) {
	a := c.AttrOrDefault(name)
	if a.Graph == nil || a.Int < 0 || int(a.Int) > len(a.Graph.Inputs) {
		return nil, 0, fmt.Errorf("attribute %q is missing", name)
	}
	return a.Graph, len(a.Graph.Inputs) - int(a.Int), nil
}

// Import writes what a graph computes of the given inputs, settles it, and returns
// its outputs. consts holds the names of the constants that it has written before,
// by their names in g; it adds those that are new.
func (c *Call) Import(b *graph.Builder, g *graph.Graph, inputs []string, consts map[string]string) ([]string, error) {
	if err := c.Account.Afford(roundBytes + len(g.Outputs)*nameBytes + namesSize(g, c.Name+"/")); err != nil {
		return nil, err
	}
	bind := map[string]string{}
	for i, v := range g.Inputs {
		bind[v.Name] = inputs[i]
	}
	for _, k := range g.Consts {
		if name, held := consts[k.Name]; held {
			bind[k.Name] = name
		}
	}
	names := b.Import(c.Name+"/", g, bind)
	for _, k := range g.Consts {
		consts[k.Name] = names[k.Name]
	}
	out := make([]string, len(g.Outputs))
	for i, o := range g.Outputs {
		out[i] = names[o.Name]
	}
	return out, c.Settle()
}
