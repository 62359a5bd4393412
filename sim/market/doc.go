// Package market simulates the economy of a network: people who bid, compute, join, leave and cheat, by the rules that
// the chain applies.
//
// [Day] plays a day of blocks with up to millions of providers and orders. Orders for leases meet offers of
// validators by core/book and core/team; batches meet capacity at the clearings of core/auction. Both are priced, burnt and
// credited by core/job, computing power is that of core/power, measured speeds are those of core/match. [Catalogue] plays
// attacks by the rules of a new chain, and says what each earns, [Sweeps] and [Thresholds] from where on. [Splits] says what an
// identity gains by being several.
//
// What is simulated is people: what work costs them, what it is worth to them, and how they bid. Fees of transactions are
// left out, so that attacks look better than they are.
//
// Invariants: all follows from a seed. Money is whole utally, and none comes or goes in any block. A provider sells no
// more than it can compute, unless it cheats.
//
// Sources: docs/economy.md says what is played and what was found; the rules are those of docs/spec.
package market
