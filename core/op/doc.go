// Package op knows the operators: for each, in one table, what it means in
// primitives (or in simpler operators) and what its gradient is.
//
// # Lowering is typing
//
// Infer walks a graph in canonical order and lowers every node at once. The
// type and shape of a value are those of what it was lowered to, so there is no
// second set of shape rules that could disagree. Cost, too, is that of the
// primitives and of nothing else.
//
// An operator is either basic (Def.Lower emits primitives) or composite
// (Def.Expand writes it in simpler operators; that expansion is its canonical
// meaning, and disputes run on it). Gradients are written in ONNX operators, so
// that a training step is an ordinary graph. An operator that states no gradient
// is differentiated through its expansion.
//
// # What lowering does on the way
//
//   - Affine data movement (transposing, slicing with steps, broadcasting,
//     adding or dropping axes, splitting an axis) emits nothing: it becomes part
//     of how the next primitive reads its operand (view).
//   - A primitive whose operands are all constant is computed at once, within a
//     budget, so that the shape arithmetic of exported models disappears.
//   - The same primitive of the same operands is emitted once.
//   - Nodes and constants that no output needs are dropped.
//
// # Invariants
//
// A program depends on the structure of its graph alone: not on names, nor on
// how the graph was stored. Nothing here panics on a hostile graph, and what
// lowering one takes is charged to an account of 52 MB before it is allocated. What is not supported exactly
// is refused by the name of the node.
//
// Source: the ONNX operator specifications, opset 27.
package op
