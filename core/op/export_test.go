package op

import "github.com/tally-network/tally/core/graph"

// Attrs returns the attributes that an operator may have.
func Attrs(name string) []graph.Attr {
	if d, ok := table[name]; ok {
		return d.Attrs
	}
	return nil
}
