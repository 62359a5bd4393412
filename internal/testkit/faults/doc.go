// Package faults puts one wrong bit into a node of a real step, of training or of a batch, and lets
// everything after it be computed honestly from there. It plays the dispute that follows about a unit of a
// lease, from both sides. The author of the fault is the defender against an honest challenger, and then the
// challenger of an honest defender.
//
// Invariant: a dispute must end at the very node, and against the author of the fault. Some
// faults are swallowed by what comes after, so that the step ends in the right
// state; then there is nothing to dispute, and the author also gives the state
// itself a wrong bit, which must not hide the node.
//
// Call [New] for a [Subject], and [Subject.Hunt] for a fault in one of its nodes. [Kinds] are the kinds of work that
// people order, and [Subject.Part] finds the nodes of a part of theirs, such as augmentation.
//
// Source: docs/spec/dispute.md.
package faults
