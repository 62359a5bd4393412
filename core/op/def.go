package op

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tally-network/tally/core/graph"
)

// Def is what the network knows of an operator. Exactly one of Lower and
// Expand is set.
type Def struct {
	Name     string
	Min, Max int          // number of inputs; Max −1: any
	Outputs  int          // greatest number of outputs; −1: any
	Attrs    []graph.Attr // the attributes it may have: kind and default

	// Lower emits the primitives of a basic operator and returns its outputs.
	Lower func(*Call) ([]view, error)

	// Expand writes a composite operator in simpler ones and returns the names
	// of its outputs.
	Expand func(*Call, *graph.Builder) ([]string, error)

	// Settings are inputs of a composite operator that say what it does. Where
	// they are constant they have no gradient, or training would change the
	// meaning of a model: an exponent, limits, the statistics of a data set.
	Settings []int

	// Grad writes the gradients of the inputs, given those of the outputs; an
	// empty name is no gradient. Without it, an operator is differentiated
	// through its expansion, or not at all.
	Grad func(c *Call, b *graph.Builder, dy []string) ([]string, error)
}

var table = map[string]*Def{}

// define adds operators to the table. Each file of a family calls it.
func define(defs ...Def) bool {
	for _, d := range defs {
		if _, twice := table[d.Name]; twice || (d.Lower == nil) == (d.Expand == nil) {
			panic("operator " + d.Name + " is defined twice, or not once")
		}
		table[d.Name] = &d
	}
	return true
}

// Names returns the operators that the network knows, sorted.
func Names() []string { return slices.Sorted(maps.Keys(table)) }

// call checks a node against the table and the values it reads.
func (l *lowering) call(n *graph.Node) (*Call, error) {
	d, ok := table[n.Op]
	if !ok {
		return nil, errors.New("the operator is not supported; write the model without it, in those of docs/spec/operators.md")
	}
	given := len(n.Inputs)
	for given > 0 && n.Inputs[given-1] == "" {
		given--
	}
	if given < d.Min || d.Max >= 0 && given > d.Max {
		return nil, fmt.Errorf("it has %d inputs, but takes %s", given, between(d.Min, d.Max))
	}
	if len(n.Outputs) < 1 || d.Outputs >= 0 && len(n.Outputs) > d.Outputs {
		return nil, fmt.Errorf("it has %d outputs, but gives %s", len(n.Outputs), between(1, d.Outputs))
	}
	for _, a := range n.Attrs {
		i := slices.IndexFunc(d.Attrs, func(b graph.Attr) bool { return a.Name == b.Name })
		if i < 0 {
			return nil, fmt.Errorf("attribute %q is not supported; remove it if the model can do without", a.Name)
		}
		if a.Kind != d.Attrs[i].Kind {
			return nil, fmt.Errorf("attribute %q is %v, but should be %v", a.Name, a.Kind, d.Attrs[i].Kind)
		}
	}
	c := &Call{Node: &graph.Node{Name: n.Name, Op: n.Op, Outputs: n.Outputs, Attrs: n.Attrs}, def: d, l: l, In: make([]view, given)}
	for i, name := range n.Inputs[:given] {
		c.Inputs = append(c.Inputs, l.resolve(name))
		if name == "" {
			if i < d.Min {
				return nil, fmt.Errorf("input %d is missing", i)
			}
			continue
		}
		if c.In[i], ok = l.values[name]; !ok {
			return nil, fmt.Errorf("input %q is not defined", name)
		}
	}
	return c, nil
}

func between(lo, hi int) string {
	switch {
	case hi < 0:
		return fmt.Sprintf("at least %d", lo)
	case lo == hi:
		return fmt.Sprint(lo)
	}
	return fmt.Sprintf("%d to %d", lo, hi)
}
