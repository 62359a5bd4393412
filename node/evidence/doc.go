// Package evidence makes proof bundles of settled orders, and checks them
// without a network.
//
// A bundle holds the signed order, the record of its lease with every receipt, and the files and
// states that the work started from and ended in. Its anchor is a header that the validators
// signed, with the proof that the order's settlement is in the state it commits to. Whoever
// trusts the validator set, by its hash, need trust nothing else; and with the states at hand
// anybody can re-execute any segment.
//
// Call [Collect] to make one. [Check] opens one; [Proof.Execute] plays a part of it again.
//
// Invariant: nothing is executed before all else was checked, in this order: the container's
// digests, the anchor, the record, every root and signature.
//
// Source: docs/spec/bundle.md.
package evidence
