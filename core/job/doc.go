// Package job is the life of an order as a pure state machine.
//
// An Order is a consumer's signed wish: a problem, all of whose parts are bound
// by roots, and conditions. Matched to an offer it becomes a Lease. The problem
// cuts itself into units (rounds × shards, each a fixed number of local steps from the round's
// start state). The lease follows each of them from open over assigned, received and counted to
// accepted. It follows each round to its merge, and the whole to its settlement:
//
//	Apply(Lease, Event) → (Lease, []Effect, error)
//
// Work is of a kind: training, or a batch of independent steps. What differs between kinds
// stands in kind.go; the rest asks by [Problem.Independent] and [Problem.Merges].
//
// [NewLease] begins a lease, and [Apply] is all that happens to it. Events are what people
// and the clock do; effects are what the chain must do with money and records. Nothing here
// reads a clock or touches an account.
//
// # Invariants (Lease.Check)
//
//   - What escrow paid, returned, burnt and was taxed adds up to the price and the deposit once
//     the lease has ended, and never exceeds them before.
//   - A unit is accepted only if a quorum of custodians keeps it, every audit that was drawn was
//     passed or forfeited, no dispute holds it, and, where attempts can be forced, its provider has
//     shown by its VRF that it was not. Its window is over, too, unless the order speculates.
//   - Behind every unit that is given out, and every claim that is in dispute, stake is reserved.
//     What the chain holds of an account is what the ledger of exposures says.
//   - State roots depend on the order alone: a unit's start is the start state or
//     the merge of the round before, whoever computed it.
//
// Sources: DKLabs.AI §7, §10.5; Distribute.AI §5; MatrixAI §3.4; the project's
// specification is docs/spec/lease.md.
package job
