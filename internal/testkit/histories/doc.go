// Package histories writes random histories of the whole chain. It then checks that replayed, killed and restored nodes reach the same
// app hash at every height, and that an imported chain goes on alike.
//
//	h := histories.Write(t, seed)       // real blocks of signed transactions, with an upgrade in the middle
//	h.Replayed(t); h.Killed(t)          // each has the same app hash at every height
//	h.Imported(t)                       // exported, and begun with as a genesis
//	n := h.Opened(t, db, height)        // whoever has the state of a block otherwise, as from a snapshot
//	n.Until(h.Last())                   // goes on from there, and compares every app hash
//
// What happens around orders, an adversary writes (package adversary). Beside it people pay, register, sell, vote, drill and run
// consensus (people.go). They often ask for what is refused.
//
// Invariant: a seed determines its history.
package histories
