package op

import (
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
)

// What the functions of an operator are.
type (
	lowerFunc  = func(*lower.Call, *lower.Emitter) ([]lower.View, error)
	expandFunc = func(*lower.Call, *graph.Builder) ([]string, error)
	gradFunc   = func(c *lower.Call, b *graph.Builder, dy []string) ([]string, error)
)

var table = lower.Table{}

// define adds operators to the table. Each file of a family calls it.
func define(operators ...lower.Operator) bool {
	table.Add(operators...)
	return true
}

// Names returns the operators that the network knows, sorted.
func Names() []string { return table.Names() }

// Infer types and lowers g in profile p. An error names the node that is at fault.
func Infer(g *graph.Graph, p lower.Profile) (*lower.Typed, error) { return table.Infer(g, p) }

// InferOwn is Infer in profile fp32 for a graph that comes from no file, and is not
// differentiated: it may take any memory.
func InferOwn(g *graph.Graph) (*lower.Typed, error) { return table.InferOwn(g) }

// Flatten returns g with what nodes that hold graphs (If, Loop, Scan) come to in
// their place.
func Flatten(g *graph.Graph) (*graph.Graph, error) { return table.Flatten(g) }
