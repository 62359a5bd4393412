// Package sim plays whole orders with people of every character, to count what
// an attack earns and what it breaks instead of arguing about it.
//
// Nothing of the protocol is modelled: leases are core/job's state machine, with
// the draws of core/proof; work is a small training whose states are computed;
// disputes are games of core/dispute between parties that replay it. Only the
// network is left out, and so are fees of transactions. Each run follows from a
// seed.
//
// Invariants: after every event the lease's own checks hold and no money comes
// or goes. Profit is what an account receives less what it gives and what its
// computing costs.
//
// [Adversaries] plays the attacks of docs/spec/attacks.md, one by one, with real states
// and games. [Coalitions] lets people of up to four roles search for the strategy that
// pays best; there states are mere names, and the referee of disputes is right.
package sim
