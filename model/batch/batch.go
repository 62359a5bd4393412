// Package batch frees models of the number of records that they were made for.
//
// Training fixes a model's batch: a program is static. Whoever uses the trained model has one record, or a thousand. Call [Free], and write what
// it gives with onnx.WriteBatch.
//
// The batch is the first axis of every input and output. What else holds it are extents that nodes take. For Reshape it becomes -1, which is
// whatever is left; Expand is told the first axis of an input:
//
//	Reshape [32 128 64] → [4096 64]    [-1 64]
//	Expand  [1 1 64] → [32 1 64]       Concat(Shape(input)[0:1], [1 64])
//
// Invariants: at its own batch a freed model computes the same. At others the batch is one axis of every value that has it, outermost where
// Reshape joins axes. Shapes alone are compared: an operator that mixes records mixes those of any batch.
//
// Source: onnx.ai/onnx/operators/onnx__Reshape.html.
package batch

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/lower"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
)

// times is how much larger the batch is that a model is tried with. An extent that stays is not taken for one that grows.
const times = 3

// tries bounds how often what Reshape takes is chosen anew. The first choice holds but for models whose batch is not their first axis inside.
const tries = 4

// Free returns g with the batch left open where nodes name it. Its inputs and outputs keep their extents. An error says what takes no other
// batch.
func Free(g *graph.Graph) (*graph.Graph, error) {
	n, err := extent(g)
	if err != nil {
		return nil, err
	}
	if g, err = op.Flatten(g); err == nil {
		g, err = g.Canonical()
	}
	if err != nil {
		return nil, err
	}
	f := &freeing{of: g, axes: map[int]int{}}
	if f.small, err = op.InferOwn(g); err != nil {
		return nil, err
	}
	for i := range g.Nodes {
		f.choose(i, n)
	}
	for range tries {
		if f.large, err = op.InferOwn(grown(f.open())); err != nil {
			return nil, fmt.Errorf("with %d records in place of %d: %w", times*n, n, err)
		}
		again, err := f.check()
		if err != nil {
			return nil, err
		}
		if !again {
			return f.open(), nil
		}
	}
	return nil, errors.New("the batch is mixed with other axes")
}

// extent returns the first axis that all inputs and outputs have.
func extent(g *graph.Graph) (n int, err error) {
	for _, v := range slices.Concat(g.Inputs, g.Outputs) {
		if len(v.Shape) == 0 || n > 0 && v.Shape[0] != n {
			return 0, fmt.Errorf("%q has the shape %v: no first axis counts records in all inputs and outputs", v.Name, v.Shape)
		}
		n = v.Shape[0]
	}
	if len(g.Inputs) == 0 || n == 0 {
		return 0, errors.New("the model reads no records")
	}
	return n, nil
}

// grown returns g for a larger batch.
func grown(g *graph.Graph) *graph.Graph {
	c := *g
	grow := func(list []graph.Value) []graph.Value {
		list = slices.Clone(list)
		for i, v := range list {
			list[i].Shape = append(tensor.Shape{v.Shape[0] * times}, v.Shape[1:]...)
		}
		return list
	}
	c.Inputs, c.Outputs = grow(g.Inputs), grow(g.Outputs)
	return &c
}

// freeing is a model while its batch is freed.
type freeing struct {
	of           *graph.Graph
	axes         map[int]int // by node that is told extents: which of them is the batch, or holds it
	small, large *lower.Typed
}

// choose marks a node that is told extents, of which one may be the batch.
func (f *freeing) choose(i, n int) {
	node := &f.of.Nodes[i]
	if node.Op != "Reshape" && node.Op != "Expand" || !f.constant(node.Inputs[1]) {
		return
	}
	_, to := f.small.Type(node.Outputs[0])
	k := slices.IndexFunc(to, func(d int) bool { return d%n == 0 })
	if k < 0 || node.Op == "Expand" && (k > 0 || to[0] != n) {
		return
	}
	f.axes[i] = k
}

// constant says whether a value is the same whatever the inputs are.
func (f *freeing) constant(name string) bool {
	return f.of.Const(name) != nil || slices.ContainsFunc(f.of.Nodes, func(n graph.Node) bool { return n.Op == "Constant" && n.Outputs[0] == name })
}

// open returns the model with -1 for the batch in what Reshape takes.
func (f *freeing) open() *graph.Graph {
	c := *f.of
	c.Consts, c.Nodes = slices.Clone(c.Consts), slices.Clone(c.Nodes)
	b := &extents{c: &c, unused: f.unused, lists: map[string]string{}}
	for i := range f.of.Nodes {
		k, ok := f.axes[i]
		if !ok {
			continue
		}
		n := c.Nodes[i]
		_, to := f.small.Type(n.Outputs[0])
		list := make([]int64, len(to))
		for axis, d := range to {
			list[axis] = int64(d)
		}
		told := ""
		if n.Op == "Expand" {
			told = b.behindBatch(list[1:])
		} else {
			list[k] = -1
			told = b.list(list)
		}
		c.Nodes[i].Inputs = []string{n.Inputs[0], told}
	}
	return &c
}

// extents writes lists of extents into a graph, each once.
type extents struct {
	c      *graph.Graph
	unused func(string) string
	lists  map[string]string // what lists are called, by what they hold
}

func (b *extents) list(v []int64) string {
	key := fmt.Sprint(v)
	if b.lists[key] == "" {
		b.lists[key] = b.unused("extents" + key)
		b.c.Consts = append(b.c.Consts, graph.Const{Name: b.lists[key], Tensor: tensor.Must(tensor.From(tensor.Shape{len(v)}, v))})
	}
	return b.lists[key]
}

// behindBatch returns the list of the batch of the first input, and more extents.
func (b *extents) behindBatch(rest []int64) string {
	key := "[batch]" + fmt.Sprint(rest)
	if b.lists[key] != "" {
		return b.lists[key]
	}
	if b.lists["[batch]"] == "" {
		b.lists["[batch]"] = b.unused("extents[batch]")
		b.c.Nodes = append(b.c.Nodes, graph.Node{Op: "Shape", Inputs: []string{b.c.Inputs[0].Name}, Outputs: []string{b.lists["[batch]"]}, Attrs: []graph.Attr{graph.Int("end", 1), graph.Int("start", 0)}})
	}
	b.lists[key] = b.unused("extents" + key)
	b.c.Nodes = append(b.c.Nodes, graph.Node{Op: "Concat", Inputs: []string{b.lists["[batch]"], b.list(rest)}, Outputs: []string{b.lists[key]}, Attrs: []graph.Attr{graph.Int("axis", 0)}})
	return b.lists[key]
}

// unused returns a name that no value of the model has.
func (f *freeing) unused(name string) string {
	for {
		if t, _ := f.small.Type(name); t == 0 {
			return name
		}
		name += "_"
	}
}

// check returns an error unless the tried batch is one axis of what has it. It says whether what Reshape takes is to be tried anew.
func (f *freeing) check() (again bool, err error) {
	for i := range f.of.Nodes {
		n := &f.of.Nodes[i]
		if n.Op == "Constant" { // those whose readers are told otherwise are gone
			continue
		}
		for _, out := range n.Outputs {
			if out == "" {
				continue
			}
			axis, err := f.axis(out)
			if err != nil {
				return false, err
			}
			if n.Op != "Reshape" {
				if axis < 0 && f.joins(n) {
					return false, fmt.Errorf("%s makes one of a batch, whose records do not stay apart", n.Op)
				}
				if axis >= 0 && !f.kept(i, out, axis) {
					return false, fmt.Errorf("%s makes %q, whose axis %d holds more than one batch", n.Op, out, axis)
				}
				continue
			}
			if changed, err := f.reshaped(i, n, axis); changed || err != nil {
				return changed, err
			}
		}
	}
	for _, v := range f.of.Outputs {
		if axis, err := f.axis(v.Name); axis != 0 || err != nil {
			return false, fmt.Errorf("output %q does not grow with the batch", v.Name)
		}
	}
	return false, nil
}

// axis returns the one axis of a value that grows with the batch, -1 if none does.
func (f *freeing) axis(name string) (int, error) {
	_, small := f.small.Type(name)
	_, large := f.large.Type(name)
	if len(small) != len(large) {
		return 0, fmt.Errorf("%q has the shape %v, with a larger batch %v", name, small, large)
	}
	found := -1
	for i := range small {
		if small[i] == large[i] {
			continue
		}
		if found >= 0 || large[i] != times*small[i] {
			return 0, fmt.Errorf("%q has the shape %v, with a larger batch %v", name, small, large)
		}
		found = i
	}
	return found, nil
}

// joins says whether a node whose output has no batch reads one: a sum over records, for example. Where the extent that grew was no batch, that
// shows it.
func (f *freeing) joins(n *graph.Node) bool {
	return n.Op != "Shape" && n.Op != "Size" && slices.ContainsFunc(n.Inputs, func(in string) bool {
		if in == "" {
			return false
		}
		at, err := f.axis(in)
		return err != nil || at >= 0
	})
}

// kept says whether the batch is as it is in one of a node's inputs, or as a node is told.
func (f *freeing) kept(i int, out string, axis int) bool {
	n := &f.of.Nodes[i]
	if _, told := f.axes[i]; told { // an Expand
		return axis == 0
	}
	_, to := f.small.Type(out)
	for _, in := range n.Inputs {
		if in == "" {
			continue
		}
		_, from := f.small.Type(in)
		if at, err := f.axis(in); err == nil && at >= 0 && from[at] == to[axis] {
			return true
		}
	}
	return false
}

// reshaped checks a Reshape, whose output has the batch on some axis: as many elements must stand before it as in the input.
func (f *freeing) reshaped(i int, n *graph.Node, axis int) (changed bool, err error) {
	_, from := f.small.Type(n.Inputs[0])
	_, to := f.small.Type(n.Outputs[0])
	at, err := f.axis(n.Inputs[0])
	if err != nil {
		return false, err
	}
	if at < 0 {
		delete(f.axes, i) // its extents stay, however they are written
		return false, nil
	}
	before := from[:at].Elements()
	if axis >= 0 && to[:axis].Elements() == before {
		return false, nil
	}
	for k := range to {
		if _, chosen := f.axes[i]; chosen && k != axis && to[:k].Elements() == before && to[k] > 1 {
			f.axes[i] = k
			return true, nil
		}
	}
	return false, fmt.Errorf("%s from %v to %v mixes records", n.Op, from, to)
}
