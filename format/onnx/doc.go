// Package onnx reads and writes programs as ONNX model files.
//
// [Read] takes untrusted bytes. It accepts one static graph of the default operator domain,
// operator sets 6 to 27. The model's functions it puts in the place of their calls. It brings
// all of it to the set that package graph holds, and refuses everything else by name: a model is
// never approximated. [Write] gives the one canonical file of a graph, so that reading it back
// changes nothing and equal graphs are equal bytes; nodes that hold graphs it writes as what
// they come to.
//
// Invariants:
//   - Reading allocates at most the size of the files and 64 MiB, whatever they
//     say: every length is compared with the bytes present, and every
//     allocation is charged to a budget, before it is made. Tensors are loaded
//     last, once the whole graph has been checked. Lowering the graph as well
//     (op.Infer) keeps within the same bound.
//   - Graphs and functions inside others are read to a depth of 8, no other
//     message recursively, and no input panics.
//   - External data is reached only through the function that the caller gives.
//
// Sources: ONNX IR and onnx.proto (onnx.ai/onnx/repo-docs/IR.html), Protocol
// Buffers encoding (protobuf.dev/programming-guides/encoding), ONNX operator
// changelog (onnx.ai/onnx/operators).
package onnx
