package op

import "github.com/tally-network/tally/core/graph"

// Attrs returns the attributes that an operator may have.
func Attrs(name string) []graph.Attr {
	if d, ok := table[name]; ok {
		return d.Attrs
	}
	return nil
}

// Taken returns the bytes that lowering was charged for.
func (t *Typed) Taken() int { return maxMemory - t.l.memory }
