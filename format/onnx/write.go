package onnx

import (
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/op"
	"github.com/tally-network/tally/core/tensor"
)

// producer is the producer_name of written models, without a version: files do not depend on who writes them.
const producer = "tally"

// Write returns the model file of g, with its nodes in canonical order, fields ascending and elements in raw_data.
// Read gives the same graph back. Nodes that hold graphs are written as what they come to.
func Write(g *graph.Graph) ([]byte, error) { return write(g, "") }

// WriteBatch is Write with a symbolic dimension as the first axis of every input and output.
func WriteBatch(g *graph.Graph, dim string) ([]byte, error) { return write(g, dim) }

func write(g *graph.Graph, first string) ([]byte, error) {
	g, err := op.Flatten(g)
	if err == nil {
		g, err = g.Canonical()
	}
	if err == nil {
		err = validate(g)
	}
	if err != nil {
		return nil, fmt.Errorf("write ONNX model: %w", err)
	}
	e := &encoder{dry: true}
	e.model(g, first)
	if e.n > MaxBytes {
		return nil, fmt.Errorf("write ONNX model: %d bytes, limit %d: keep large tensors in a safetensors file", e.n, MaxBytes)
	}
	e = &encoder{b: make([]byte, 0, e.n)}
	e.model(g, first)
	return e.b, nil
}

// encoder appends fields. A dry one counts the bytes, which a message needs to know of its parts before.
type encoder struct {
	b   []byte
	n   int
	dry bool
}

func (e *encoder) tag(num protowire.Number, typ protowire.Type) {
	if e.dry {
		e.n += protowire.SizeTag(num)
		return
	}
	e.b = protowire.AppendTag(e.b, num, typ)
}

func (e *encoder) int(num protowire.Number, v int64) {
	e.tag(num, varint)
	e.length(uint64(v))
}

func (e *encoder) length(v uint64) {
	if e.dry {
		e.n += protowire.SizeVarint(v)
		return
	}
	e.b = protowire.AppendVarint(e.b, v)
}

func (e *encoder) float(num protowire.Number, v float32) {
	e.tag(num, fixed32)
	if e.dry {
		e.n += 4
		return
	}
	e.b = protowire.AppendFixed32(e.b, math.Float32bits(v))
}

func (e *encoder) text(num protowire.Number, s string) { e.bytes(num, []byte(s)) }

func (e *encoder) bytes(num protowire.Number, b []byte) {
	e.tag(num, chunk)
	e.length(uint64(len(b)))
	if e.dry {
		e.n += len(b)
		return
	}
	e.b = append(e.b, b...)
}

// message writes a field that holds what body writes.
func (e *encoder) message(num protowire.Number, body func(*encoder)) {
	inner := encoder{dry: true}
	body(&inner)
	e.tag(num, chunk)
	e.length(uint64(inner.n))
	if e.dry {
		e.n += inner.n
		return
	}
	body(e)
}

// oldestWritten is the operator set of written models, unless they need a newer one.
const oldestWritten = 21

// irVersions are the versions of the file format that came with operator sets.
var irVersions = map[int]int64{21: 10, 22: 10, 23: 11, 24: 12, 25: 13, 26: 13, 27: 13}

// writtenSet returns the first operator set, from oldestWritten on, that has all
// operators and attributes of g, so that as many runtimes as can take the file.
// What they mean has not changed since. Element types do not count.
func writtenSet(g *graph.Graph) int {
	set := oldestWritten
	for i := range g.Nodes {
		list := editions[g.Nodes[i].Op]
		for _, e := range list {
			named := slices.ContainsFunc(e.attrs, func(a string) bool { return g.Nodes[i].Attr(a) != nil })
			if named || list[0].born && list[0].since > oldestWritten {
				set = max(set, e.since)
			}
		}
	}
	return set
}

func (e *encoder) model(g *graph.Graph, first string) {
	set := writtenSet(g)
	e.int(modelIRVersion, irVersions[set])
	e.text(modelProducer, producer)
	e.message(modelGraph, func(e *encoder) { e.graph(g, first) })
	e.message(modelOpset, func(e *encoder) {
		e.text(opsetDomain, "")
		e.int(opsetVersion, int64(set))
	})
}

func (e *encoder) graph(g *graph.Graph, first string) {
	for i := range g.Nodes {
		e.message(graphNode, func(e *encoder) { e.node(&g.Nodes[i]) })
	}
	e.text(graphName, g.Name)
	for _, c := range g.Consts {
		e.message(graphConst, func(e *encoder) { e.tensor(c.Name, c.Tensor) })
	}
	for _, v := range g.Inputs {
		e.message(graphInput, func(e *encoder) { e.value(v, first) })
	}
	for _, v := range g.Outputs {
		e.message(graphOutput, func(e *encoder) { e.value(v, first) })
	}
}

func (e *encoder) node(n *graph.Node) {
	for _, s := range n.Inputs {
		e.text(nodeInput, s)
	}
	for _, s := range n.Outputs {
		e.text(nodeOutput, s)
	}
	if n.Name != "" {
		e.text(nodeName, n.Name)
	}
	e.text(nodeOp, n.Op)
	for i := range n.Attrs {
		e.message(nodeAttr, func(e *encoder) { e.attr(&n.Attrs[i]) })
	}
}

func (e *encoder) attr(a *graph.Attr) {
	e.text(attrName, a.Name)
	switch a.Kind {
	case graph.AttrFloat:
		e.float(attrFloat, a.Float)
	case graph.AttrInt:
		e.int(attrInt, a.Int)
	case graph.AttrString:
		e.text(attrString, a.String)
	case graph.AttrTensor:
		e.message(attrTensor, func(e *encoder) { e.tensor("", a.Tensor) })
	case graph.AttrFloats:
		for _, v := range a.Floats {
			e.float(attrFloats, v)
		}
	case graph.AttrInts:
		for _, v := range a.Ints {
			e.int(attrInts, v)
		}
	case graph.AttrStrings:
		for _, v := range a.Strings {
			e.text(attrStrings, v)
		}
	}
	e.int(attrKind, int64(a.Kind))
}

func (e *encoder) tensor(name string, t *tensor.Tensor) {
	for _, d := range t.Shape {
		e.int(tensorDims, int64(d))
	}
	e.int(tensorType, int64(t.Type))
	if name != "" {
		e.text(tensorName, name)
	}
	if t.Len() > 0 { // ONNX wants no data field without data
		e.bytes(tensorRaw, t.Bytes())
	}
}

// value writes a value, whose first axis is a symbolic dimension unless that is "".
func (e *encoder) value(v graph.Value, first string) {
	e.text(valueName, v.Name)
	e.message(valueType, func(e *encoder) {
		e.message(typeTensor, func(e *encoder) {
			e.int(tensorTypeElem, int64(v.Type))
			e.message(tensorTypeShape, func(e *encoder) {
				for i, d := range v.Shape {
					e.message(shapeDim, func(e *encoder) {
						if i == 0 && first != "" {
							e.text(dimParam, first)
							return
						}
						e.int(dimValue, int64(d))
					})
				}
			})
		})
	})
}
