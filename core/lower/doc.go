// Package lower turns graphs of operators into programs of primitives. Which
// operators there are it is told by a [Table]; core/op has ONNX's.
//
// Call [Table.Infer] first: it types and lowers a graph. [Typed.Function] and
// [Typed.Program] make a program of the result, [Typed.Differentiable] gives what
// core/train differentiates.
//
// # Lowering is typing
//
// Infer walks a graph in canonical order and lowers every node at once. The
// type and shape of a value are those of what it was lowered to, so there is no
// second set of shape rules that could disagree. Cost, too, is that of the
// primitives and of nothing else.
//
// An operator is either basic (Operator.Lower emits primitives by an [Emitter]) or
// composite (Operator.Expand writes it in simpler operators by a graph.Builder; that
// expansion is its canonical meaning, and disputes run on it). Gradients are written
// in operators of the table, so that a training step is an ordinary graph. An operator
// that states no gradient is differentiated through its expansion.
//
// # What lowering does on the way
//
//   - Affine data movement (transposing, slicing with steps, broadcasting,
//     adding or dropping axes, splitting an axis) emits nothing: it becomes part
//     of how the next primitive reads its operand ([View]).
//   - A primitive whose operands are all constant is computed at once, within a
//     budget, so that the shape arithmetic of exported models disappears.
//   - The same primitive of the same operands is emitted once.
//   - Nodes and constants that no output needs are dropped.
//   - Products of floats are computed as the [Profile] says.
//
// # Invariants
//
// A program depends on the structure of its graph alone: not on names, nor on
// how the graph was stored. Nothing here panics on a hostile graph, and what
// lowering one takes is charged to an [Account] of 52 MB before it is allocated.
// What is not supported exactly is refused by the name of the node.
//
// Source: docs/spec/programs.md says what a program is. A view is what MLIR's linalg
// calls an indexing map.
package lower
