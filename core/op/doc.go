// Package op knows ONNX's operators: for each, in one table, what it means in
// primitives (or in simpler operators) and what its gradient is. Package lower does
// the rest.
//
// Call [Infer] first; it types and lowers a graph.
//
// One file defines each family of operators, and is named after what one would search for. What
// operators ask of their inputs and attributes is in input.go. What expansions and gradients
// write is in build.go, and what lowerings emit in emit.go. CONTRIBUTING.md, "Add an operator",
// walks through the steps.
//
// # Invariants
//
// An operator has one meaning, bit for bit, in docs/spec/operators.md. No helper
// remembers anything between calls, and none panics on a hostile node. What an
// operator makes beside nodes and primitives (tables, lists) is charged to
// Call.Account before it is made.
//
// Source: the ONNX operator specifications, opset 27.
package op
