package op

import "github.com/tally-network/tally/core/graph"

// Attrs returns the attributes that an operator may have.
func Attrs(name string) []graph.Attr {
	if o, ok := table[name]; ok {
		return o.Attrs
	}
	return nil
}
