// Package diagram draws the graph of a model as a picture in SVG, from top to bottom. Call [Draw].
//
// Nodes that follow one another alone are one stack of rows. Parts that repeat are drawn once, in a frame that says
// how often. What only constants go into is left out; weights are told by their shapes.
//
// Invariants: the picture follows from the graph alone. It has no script, and nothing of other files. Names of
// strangers are text in it. What a picture takes is bounded before it is laid out.
//
// Source: Sugiyama, Tagawa and Toda, Methods for visual understanding of hierarchical system structures, 1981, for
// the layers and their order. Places within a layer are those of least squares, by pooling adjacent violators.
package diagram

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/tensor"
)

// Limits on what is drawn.
const (
	maxNodes  = 1 << 15 // of a graph
	maxDrawn  = 1 << 11 // once parts that repeat are drawn once
	maxBends  = 1 << 14 // places where edges pass others
	maxLetter = 28      // of a name
)

// Options say what is drawn beside the graph.
type Options struct {
	Title string
	Note  string                                  // below the title
	Shape func(value string) (tensor.Shape, bool) // of a value; may be nil
}

// Draw returns the picture of a graph in canonical order.
func Draw(g *graph.Graph, o Options) ([]byte, error) {
	if len(g.Nodes) > maxNodes {
		return nil, tooLarge(len(g.Nodes), maxNodes)
	}
	if o.Shape == nil {
		o.Shape = func(string) (tensor.Shape, bool) { return nil, false }
	}
	d := read(g, o)
	d.collapse()
	if n := d.drawn(); n > maxDrawn {
		return nil, tooLarge(n, maxDrawn)
	}
	l, err := layOut(d)
	if err != nil {
		return nil, err
	}
	return l.svg(o), nil
}

func tooLarge(n, most int) error {
	return fmt.Errorf("the graph has %d nodes to draw, limit %d: draw a part of it, or look at it with Netron", n, most)
}

// node is an operator, an input or an output.
type node struct {
	op, detail string
	label      string // of the value that it gives, its shape
	key        string // what is equal of nodes that do the same
	from       []int  // drawn nodes that it reads, in the order of its inputs
	gone       bool   // it is like another that is drawn
	frame      int    // the repeated part that it is in; −1: none
}

// frame is a part that repeats.
type frame struct{ from, size, times int }

// drawing is a graph as it is drawn.
type drawing struct {
	nodes  []node
	frames []frame
	tries  int // comparisons that are left
}

// read takes from a graph what is drawn of it.
func read(g *graph.Graph, o Options) *drawing {
	d := &drawing{}
	from := map[string]int{} // drawn node of a value
	label := func(value string) string {
		if s, ok := o.Shape(value); ok {
			return extents(s)
		}
		return ""
	}
	used := map[string]bool{}
	for i := range g.Nodes {
		for _, in := range g.Nodes[i].Inputs {
			used[in] = true
		}
	}
	for _, v := range g.Inputs {
		if used[v.Name] {
			from[v.Name] = d.add(node{op: v.Name, detail: v.Type.String(), label: extents(v.Shape), key: "input " + v.Name})
		}
	}
	held := map[string]tensor.Shape{}
	for _, c := range g.Consts {
		held[c.Name] = c.Tensor.Shape
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		x := node{op: n.Op, detail: detail(n, held), label: label(n.Outputs[0])}
		for _, in := range n.Inputs {
			if at, ok := from[in]; ok {
				x.from = append(x.from, at)
			}
		}
		if x.from == nil {
			continue
		}
		x.key = strings.Join([]string{x.op, x.detail, x.label}, "\x00")
		at := d.add(x)
		for _, out := range n.Outputs {
			if out != "" {
				from[out] = at
			}
		}
	}
	for _, v := range g.Outputs {
		if at, ok := from[v.Name]; ok {
			d.add(node{op: v.Name, detail: v.Type.String(), label: extents(v.Shape), key: "output " + v.Name, from: []int{at}})
		}
	}
	return d
}

func (d *drawing) add(n node) int {
	n.frame = -1
	d.nodes = append(d.nodes, n)
	return len(d.nodes) - 1
}

// drawn counts what is left.
func (d *drawing) drawn() (n int) {
	for i := range d.nodes {
		if !d.nodes[i].gone {
			n++
		}
	}
	return n
}

func extents(s tensor.Shape) string {
	var out []string
	for _, e := range s {
		out = append(out, strconv.Itoa(e))
	}
	return strings.Join(out, " × ")
}

// detail says of a node what matters most beside its operator: windows, or the shape of its weights.
func detail(n *graph.Node, held map[string]tensor.Shape) string {
	var parts []string
	if a := n.Attr("kernel_shape"); a != nil {
		parts = append(parts, strings.Trim(strings.ReplaceAll(fmt.Sprint(a.Ints), " ", " × "), "[]"))
	}
	if a := n.Attr("strides"); a != nil && len(a.Ints) > 0 && a.Ints[0] > 1 {
		parts = append(parts, fmt.Sprintf("stride %d", a.Ints[0]))
	}
	var most tensor.Shape
	for _, in := range n.Inputs {
		if s, ok := held[in]; ok && len(s) > 0 && s.Elements() > most.Elements() {
			most = s
		}
	}
	switch {
	case len(most) == 0 || !weighty[n.Op]:
	case n.Op == "Conv":
		parts = append(parts, fmt.Sprintf("to %d", most[0]))
	case n.Op == "ConvTranspose":
		parts = append(parts, fmt.Sprintf("to %d", most[1]))
	case n.Op == "Gemm" && n.Attr("transB") != nil && n.Attr("transB").Int != 0 && len(most) == 2:
		parts = append(parts, fmt.Sprintf("%d to %d", most[1], most[0]))
	case (n.Op == "Gemm" || n.Op == "MatMul") && len(most) == 2:
		parts = append(parts, fmt.Sprintf("%d to %d", most[0], most[1]))
	default:
		parts = append(parts, extents(most))
	}
	if a := n.Attr("num_groups"); a != nil {
		parts = append(parts, fmt.Sprintf("%d groups", a.Int))
	}
	if a := n.Attr("hidden_size"); a != nil {
		parts = append(parts, fmt.Sprintf("state of %d", a.Int))
	}
	return strings.Join(parts, ", ")
}

// weighty are operators whose weights are told.
var weighty = map[string]bool{
	"Conv": true, "ConvTranspose": true, "Gemm": true, "MatMul": true, "Gather": true, "Add": true, "Mul": true, "Sub": true, "Div": true,
	"LayerNormalization": true, "Attention": true, "Split": true, "Expand": true, "Transpose": true,
}
