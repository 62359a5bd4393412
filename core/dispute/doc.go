// Package dispute is the game by which a chain that computes almost nothing
// decides who computed a claim correctly.
//
// A claim says: from these start states, this program, run so many steps on
// these data, ends in that state. Or its steps are independent, and give these
// states. A challenger says that it is not so. The two narrow their disagreement,
// the defender by posting commitments, the challenger by picking the first that it
// disagrees with:
//
//	segment → step → node of the program → tile → element → fold block
//
// and the referee recomputes one fold block of one element, at most 32 terms,
// from operands whose provenance is proved. If the nodes agree and only the
// resulting state differs, the game narrows to one slot of the state instead.
//
// Picking the first disagreement concedes everything before it, so operands
// are proved against commitments that both sides agree on.
//
// [Challenge] finds where a claim is wrong, and [Open] begins the game. [Apply] makes a
// move, and [Expire] lets time pass. [Play] gives the move that an honest side would make.
//
// # Invariants
//
//   - An honest defender never loses, an honest challenger of a false claim never
//     loses, if they move within their clocks.
//   - A game ends: every pick shrinks what is left, and each side has a chess
//     clock in protocol time; silence loses.
//   - No move needs more than 64 KiB.
//
// Nothing is decided by votes.
//
// Sources: Verde (arXiv 2502.19405), opML (arXiv 2401.17555), Truebit; the
// project's specification is docs/spec/dispute.md.
package dispute
