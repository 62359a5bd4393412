// Package graph holds the two forms of a program.
//
// A Graph is the form that people write and exchange: ONNX-shaped, with named
// values, operators and attributes, in one canonical topological order.
//
// A Program is the form that is committed to, executed and refereed: a list of
// primitives in single-assignment form, each with one output, that turns one or
// more states into a new state. Operators of a graph are lowered to it by
// package op. The program's root is what an order binds.
//
// A State is the named tensors between two runs of a program. The Trace of a
// run is the list of roots of what its nodes computed.
//
// Call [NewBuilder] to write a graph; core/lower makes a program of it. [Program.Run] plays
// a program with a kernel for each node: [Reference], or that of an executor.
//
// Invariants: a checked Graph or Program is acyclic, well-typed and static in
// shape; node order follows from structure alone, never from a map.
//
// Sources: ONNX IR (onnx.ai/onnx/repo-docs/IR.html); Verde (arXiv 2502.19405)
// for node commitments.
package graph
