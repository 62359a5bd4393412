// Package split has a batch computed in parts, each under another validator, so that no lead and no provider sees all
// records. The chain knows nothing of it: a part is an order like others.
//
// Call [Read] for the drafts of an order file, [Foresee] for where its parts would go, and [Run] to post them, follow them
// and join what they gave. [At] is the network of a consumer's home.
//
// Invariants: [Run] goes on where an earlier process ended. A part whose order may still give a result is not posted again,
// unless [Options].Again. All validators are on disk before any part is posted. An empty output directory gets all results
// or none; in others files are overwritten one by one.
//
// Source: docs/adr/0057-split-orders.md.
package split
