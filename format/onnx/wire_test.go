package onnx

import (
	"bytes"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tally-network/tally/core/graph"
)

// The functions here spell out files field by field, so that tests can say what
// the writer never would.

func num(n protowire.Number, v int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, n, varint), uint64(v))
}

func flt(n protowire.Number, v float32) []byte {
	return protowire.AppendFixed32(protowire.AppendTag(nil, n, fixed32), math.Float32bits(v))
}

func str(n protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, n, chunk), s)
}

func msg(n protowire.Number, parts ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, n, chunk), bytes.Join(parts, nil))
}

func packed(n protowire.Number, vs ...int64) []byte {
	var b []byte
	for _, v := range vs {
		b = protowire.AppendVarint(b, uint64(v))
	}
	return msg(n, b)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// model is a file of the given operator set.
func model(set int64, parts ...[]byte) []byte {
	return join(num(modelIRVersion, 8), msg(modelGraph, parts...), msg(modelOpset, num(opsetVersion, set)))
}

func valueOf(field protowire.Number, name string, elem int64, dims ...int64) []byte {
	var shape []byte
	for _, d := range dims {
		shape = append(shape, msg(shapeDim, num(dimValue, d))...)
	}
	return msg(field, str(valueName, name), msg(valueType, msg(typeTensor, num(tensorTypeElem, elem), msg(tensorTypeShape, shape))))
}

func input(name string, dims ...int64) []byte  { return valueOf(graphInput, name, 1, dims...) }
func output(name string, dims ...int64) []byte { return valueOf(graphOutput, name, 1, dims...) }

func nodeOf(op string, in, out []string, attrs ...[]byte) []byte {
	var b [][]byte
	for _, s := range in {
		b = append(b, str(nodeInput, s))
	}
	for _, s := range out {
		b = append(b, str(nodeOutput, s))
	}
	b = append(b, str(nodeOp, op))
	return msg(graphNode, append(b, attrs...)...)
}

func intAttr(name string, v int64) []byte {
	return msg(nodeAttr, str(attrName, name), num(attrInt, v), num(attrKind, int64(graph.AttrInt)))
}

func intsAttr(name string, vs ...int64) []byte {
	b := str(attrName, name)
	for _, v := range vs {
		b = append(b, num(attrInts, v)...)
	}
	return msg(nodeAttr, b, num(attrKind, int64(graph.AttrInts)))
}

func textAttr(name, v string) []byte {
	return msg(nodeAttr, str(attrName, name), str(attrString, v), num(attrKind, int64(graph.AttrString)))
}

func read(b []byte, opt Options) (*graph.Graph, error) {
	return Read(bytes.NewReader(b), int64(len(b)), opt)
}
