// Package demo runs one training order on a whole network in this process. It starts a devnet,
// one of whose providers may cheat, and orders a character-level language model trained on a
// text. It follows the order to its settlement, and hands over the model with its proof.
//
// Everything goes the way that a user's own order would: by transactions, peers
// and files. The cheater alone is the demo's own. [Run] is all of it.
//
// Invariant: the final state follows from the order's text and seed, and is the same with
// and without a cheater.
package demo
