package graph

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tally-network/tally/core/tensor"
)

// Builder constructs a graph node by node. Values go by their names; a name
// asked for twice gets a number the second time, so names never clash, and those
// of nodes neither. What is built follows from the calls alone.
type Builder struct {
	g      *Graph
	used   map[string]bool
	next   map[string]int    // number to try next, by hint
	shared map[string]string // name of a constant, by type, shape and content
}

// NewBuilder starts an empty graph.
func NewBuilder(name string) *Builder { return Extend(&Graph{Name: name}) }

// Extend starts from what g holds. It leaves g as it is.
func Extend(g *Graph) *Builder {
	c := *g
	c.Inputs, c.Outputs = slices.Clip(c.Inputs), slices.Clip(c.Outputs)
	c.Consts, c.Nodes = slices.Clip(c.Consts), slices.Clip(c.Nodes)
	b := &Builder{g: &c, used: map[string]bool{"": true}, next: map[string]int{}, shared: map[string]string{}}
	for _, v := range g.Inputs {
		b.used[v.Name] = true
	}
	for _, k := range g.Consts {
		b.used[k.Name] = true
	}
	for _, n := range g.Nodes {
		b.used[n.Name] = true
		for _, o := range n.Outputs {
			b.used[o] = true
		}
	}
	return b
}

// Graph returns what has been built so far.
func (b *Builder) Graph() *Graph { return b.g }

// Fresh reserves a name that no value has: hint itself, if it is free.
func (b *Builder) Fresh(hint string) string {
	name := hint
	for b.used[name] {
		b.next[hint]++
		name = hint + "." + strconv.Itoa(b.next[hint])
	}
	b.used[name] = true
	return name
}

// Input adds an input and returns its name.
func (b *Builder) Input(hint string, t tensor.DType, s tensor.Shape) string {
	name := b.Fresh(hint)
	b.g.Inputs = append(b.g.Inputs, Value{name, t, s})
	return name
}

// Output makes a value an output of the graph.
func (b *Builder) Output(name string, t tensor.DType, s tensor.Shape) {
	b.g.Outputs = append(b.g.Outputs, Value{name, t, s})
}

// Init adds a named initializer and returns its name.
func (b *Builder) Init(hint string, t *tensor.Tensor) string {
	name := b.Fresh(hint)
	b.g.Consts = append(b.g.Consts, Const{name, t})
	return name
}

// shareBelow is the size in bytes up to which equal constants are held once.
const shareBelow = 1 << 12

// Const returns the name of an initializer that holds t.
func (b *Builder) Const(t *tensor.Tensor) string {
	if len(t.Bytes()) > shareBelow {
		return b.Init("const", t)
	}
	key := t.Type.String() + t.Shape.String() + string(t.Bytes())
	name, ok := b.shared[key]
	if !ok {
		name = b.Init("const", t)
		b.shared[key] = name
	}
	return name
}

// Scalar returns the name of a constant without axes.
func (b *Builder) Scalar(v float32) string { return b.Const(tensor.Scalar(v)) }

// Ints returns the name of a constant int64 vector.
func (b *Builder) Ints(v ...int) string {
	t := tensor.Must(tensor.New(tensor.Int64, tensor.Shape{len(v)}))
	for i, x := range v {
		t.Set(i, tensor.Word(x))
	}
	return b.Const(t)
}

// Cast returns the name of a value as elements of a type.
func (b *Builder) Cast(value string, t tensor.DType) string {
	return b.With(Int("to", int(t))).Op("Cast", value)
}

// Op applies an operator with one output and returns the output's name.
func (b *Builder) Op(op string, inputs ...string) string { return b.With().Op(op, inputs...) }

// Call is what is known of an operator's application before its inputs.
type Call struct {
	b     *Builder
	attrs []Attr
	hint  string
}

// With begins the application of an operator that has attributes.
func (b *Builder) With(attrs ...Attr) Call {
	attrs = slices.Clone(attrs)
	slices.SortFunc(attrs, func(x, y Attr) int { return cmp.Compare(x.Name, y.Name) })
	return Call{b: b, attrs: attrs}
}

// As names the outputs; otherwise they have the operator's name.
func (c Call) As(hint string) Call {
	c.hint = hint
	return c
}

// Op applies an operator with one output and returns the output's name.
func (c Call) Op(op string, inputs ...string) string { return c.Ops(op, 1, inputs...)[0] }

// Ops applies an operator with n outputs and returns their names.
func (c Call) Ops(op string, n int, inputs ...string) []string {
	if c.hint == "" {
		c.hint = strings.ToLower(op)
	}
	outputs := make([]string, n)
	for i := range outputs {
		outputs[i] = c.b.Fresh(c.hint)
	}
	c.b.g.Nodes = append(c.b.g.Nodes, Node{Name: outputs[0], Op: op, Inputs: slices.Clone(inputs), Outputs: outputs, Attrs: c.attrs})
	return slices.Clone(outputs)
}

// Import appends the nodes and initializers of g and returns the name of each
// of its values: the prefix and its own, if that is free. Inputs of g become
// the values that bind gives for their names; bind may also name initializers.
func (b *Builder) Import(prefix string, g *Graph, bind map[string]string) map[string]string {
	names := map[string]string{"": ""}
	maps.Copy(names, bind)
	for _, c := range g.Consts {
		if _, bound := names[c.Name]; !bound {
			names[c.Name] = b.Init(prefix+c.Name, c.Tensor)
		}
	}
	for _, n := range g.Nodes {
		for _, o := range n.Outputs {
			if o != "" {
				names[o] = b.Fresh(prefix + o)
			}
		}
	}
	rename := func(in []string) []string {
		out := make([]string, len(in))
		for i, name := range in {
			out[i] = names[name]
		}
		return out
	}
	for _, n := range g.Nodes {
		outputs := rename(n.Outputs)
		if n.Name == "" || len(outputs) > 0 && n.Name == n.Outputs[0] {
			n.Name = ""
			if len(outputs) > 0 {
				n.Name = outputs[0]
			}
		} else {
			n.Name = b.Fresh(prefix + n.Name)
		}
		n.Inputs, n.Outputs = rename(n.Inputs), outputs
		b.g.Nodes = append(b.g.Nodes, n)
	}
	return names
}
