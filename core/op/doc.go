// Package op knows ONNX's operators: for each, in one table, what it means in
// primitives (or in simpler operators) and what its gradient is. Package lower does
// the rest.
//
// Call [Infer] first; it types and lowers a graph.
//
// Each family of operators has one file, named after what one would search for, which
// defines them. input.go holds what operators ask of their inputs and attributes,
// build.go what expansions and gradients write, and emit.go what lowerings emit.
// CONTRIBUTING.md, "Add an operator", walks through the steps.
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
