// Package parts cuts a batch into parts, chooses the validators these go to, and joins what came of them. It knows no
// network: package split posts and follows.
//
// A [Wish] is what a consumer writes. [Cut] gives the records of each part, [Prices] its share of the maximum price, and [Choose]
// its validator. [Enough] says what maximum price suffices. [Join] puts results together, and [NewViewers] counts who was shown what.
//
// Invariants: every record is in one part; parts are of whole runs, so a run of a part is the run that the whole batch
// would have; prices add up to the whole; no two parts go to one validator, or to validators of one owner.
//
// Source: docs/adr/0057-split-orders.md.
package parts
