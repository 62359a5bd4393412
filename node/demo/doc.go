// Package demo runs a training order and a batch side by side on a whole network in this
// process. It starts a devnet, two of whose providers may cheat, one in each order. The
// training is of a character-level language model on a text. The batch scores the text that
// is held out, by the model as it is before. Both are followed to their settlement, and
// handed over with their proofs.
//
// Everything goes the way that a user's own orders would: by transactions, peers
// and files. The cheaters alone are the demo's own. [Run] is all of it.
//
// Invariant: what the orders give follows from text and seed, and is the same with and
// without cheaters.
package demo
