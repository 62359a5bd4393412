// Package split has a batch computed in parts, each under another validator, so that no lead and no provider sees all
// records. The chain knows nothing of it: a part is an order like others.
//
// Call [Read] for the drafts of an order file, [Foresee] for where its parts would go, and [Run] to post them, follow them
// and join what they gave. [At] is the network of a consumer's home.
//
// Invariants: whenever the process ends, [Run] goes on where it stands. Unless [Options] say so, a part whose order can still
// have a result is not posted again, and its validator is kept. No part is posted before the validators of all are on disk.
// Results come into an empty directory whole, or not at all; others are overwritten file by file.
//
// Source: docs/adr/0057-split-orders.md.
package split
