// Package chat shows on one machine how strangers serve a language model, are paid for it, and are found when they cheat.
//
// It starts a devnet, three of whose providers serve a model, and a gateway before a consumer of theirs. Questions come to the gateway by HTTP.
// Each reply is checked by another provider. The cheapest provider cheats in its second reply. [Run] is all of it; [Random] makes a model where
// none can be had.
//
// Everything goes the way that it does between machines: by transactions, streams and files. The cheater alone is the demo's own, and it is said.
//
// Invariants: each provider computes on one thread. All have one copy of the weights in memory. What is told of money is what the chain,
// or signed receipts and vouchers say.
package chat
