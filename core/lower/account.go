package lower

import (
	"fmt"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Limits on lowering one graph.
const (
	// maxMemory bounds the bytes that a graph takes with what it is lowered to, but
	// for the elements of its own initializers.
	maxMemory = 52 << 20

	// maxComputed bounds the terms that are computed for constants.
	maxComputed = 1 << 22
)

// Account is what lowering one graph may still take. A graph is untrusted: a short
// one can stand for long sequences, many rounds or large tables. What lowering
// keeps and computes is charged here, before it is made.
type Account struct {
	memory int // bytes
	terms  int // that may be computed for constants
}

func newAccount() *Account { return &Account{memory: maxMemory, terms: maxComputed} }

// Bytes that things take, as measured, and a little more.
const (
	nodeBytes   = 180 // a node of a graph
	nameBytes   = 40  // an input or output of one
	callBytes   = 250 // a node that is typed
	viewBytes   = 112 // an input of it
	valueBytes  = 330 // an output of it, or an input or initializer of the graph
	axisBytes   = 56  // an axis of one of these, or of an operand
	opcodeBytes = 330
	accessBytes = 90 // an operand
	constBytes  = 420
	roundBytes  = 300 // a graph that a node holds, each time it is put in its place
)

// Afford takes bytes from the memory that is left.
func (a *Account) Afford(bytes int) error {
	if bytes > a.memory {
		return fmt.Errorf("the model up to here takes more than %d MB of memory besides its initializers: give it fewer nodes, steps or rounds, or smaller tables", maxMemory>>20)
	}
	a.memory -= bytes
	return nil
}

// Charged returns the bytes that lowering t was charged for.
func (t *Typed) Charged() int { return maxMemory - t.l.emitter.account.memory }

// tensorSize is what a constant takes.
func tensorSize(t tensor.DType, s tensor.Shape) int {
	size := s.Elements() * t.Size()
	if size <= dedupBelow {
		size *= 3 // it is also a key
	}
	return constBytes + size
}

// Charge takes n terms from those that may be computed for constants.
func (a *Account) Charge(n int) error {
	if n > a.terms {
		return fmt.Errorf("constants of %d elements are too large to be computed while the model is read", n)
	}
	a.terms -= n
	return nil
}

// canCompute charges the terms of a constant, at least one, if there are as many.
func (a *Account) canCompute(terms int) bool {
	if terms > a.terms {
		return false
	}
	a.terms -= max(terms, 1)
	return true
}

// NewConst returns a tensor of zeros for a constant, of which it charges the
// memory. The shape is checked first.
func (a *Account) NewConst(t tensor.DType, s tensor.Shape) (*tensor.Tensor, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if err := a.Afford(tensorSize(t, s)); err != nil {
		return nil, err
	}
	return tensor.New(t, s)
}

// graphSize is what a graph takes, but for its names and the elements of its
// tensors, of which there are no more than in its file.
func graphSize(g *graph.Graph) int {
	return (len(g.Inputs)+len(g.Outputs)+len(g.Consts))*valueBytes + nodesSize(g.Nodes)
}

// nodesSize is what nodes take, but for their names.
func nodesSize(nodes []graph.Node) int {
	size := len(nodes) * nodeBytes
	for i := range nodes {
		size += (len(nodes[i].Inputs) + len(nodes[i].Outputs)) * nameBytes
	}
	return size
}

// namesSize is what the names of a graph's values take with a prefix.
func namesSize(g *graph.Graph, prefix string) (size int) {
	for i := range g.Nodes {
		n := &g.Nodes[i]
		size += len(prefix) + len(n.Name)
		for _, o := range n.Outputs {
			size += len(prefix) + len(o)
		}
	}
	return size
}

// callSize is what a typed node takes.
func callSize(c *Call) int {
	size := callBytes + len(c.In)*viewBytes
	for _, v := range c.Out {
		size += valueBytes + axisBytes*len(v.dims)
	}
	return size
}

// opcodeSize is what a primitive takes.
func opcodeSize(n *graph.Opcode) int {
	size := opcodeBytes
	for _, a := range n.Args {
		size += accessBytes + axisBytes*len(a.Dims)
	}
	return size
}
