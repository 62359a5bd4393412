package lower

import (
	"maps"
	"slices"

	"github.com/tally-network/tally/core/graph"
)

// Operator is what is known of an operator. Exactly one of Lower and Expand is
// set. Its functions may keep nothing between calls: a program follows from the
// graph alone.
type Operator struct {
	Name     string
	Min, Max int          // number of inputs; Max −1: any
	Outputs  int          // greatest number of outputs; −1: any
	Attrs    []graph.Attr // the attributes it may have: kind and default

	// Lower emits the primitives of a basic operator and returns its outputs.
	Lower func(c *Call, e *Emitter) ([]View, error)

	// Expand writes a composite operator in simpler ones and returns the names
	// of its outputs.
	Expand func(c *Call, b *graph.Builder) ([]string, error)

	// Settings are inputs of a composite operator that say what it does. Where
	// they are constant they have no gradient, or training would change the
	// meaning of a model: an exponent, limits, the statistics of a data set.
	Settings []int

	// Deferred leaves what the operator makes of constants to those who run the program: it
	// is greater than they are, so that they had better stay as they are.
	Deferred bool

	// Grad writes the gradients of the inputs, given those of the outputs; an
	// empty name is no gradient. Without it, an operator is differentiated
	// through its expansion, or not at all.
	Grad func(c *Call, b *graph.Builder, dy []string) ([]string, error)
}

// Table holds operators by name.
type Table map[string]*Operator

// Add enters operators. It panics if one is there already, or has not exactly one
// of Lower and Expand: tables are made when a program starts.
func (t Table) Add(operators ...Operator) {
	for _, o := range operators {
		if _, twice := t[o.Name]; twice || (o.Lower == nil) == (o.Expand == nil) {
			panic("operator " + o.Name + " is defined twice, or not once")
		}
		t[o.Name] = &o
	}
}

// Names returns the names of the operators, sorted.
func (t Table) Names() []string { return slices.Sorted(maps.Keys(t)) }
