// Package adversary writes its own attacks. It plays histories, in which some accounts are
// hostile, against the real application. After every block it looks for what must never be, and
// it shrinks what it finds to a script that can be kept.
//
//	w := adversary.NewWorld(t, adversary.Plain)
//	found, sent := w.Attack(seed)   // the history of a seed
//	script := w.Shrink(found)       // the least of it that still fails
//	w.Play(script)                  // again, whenever the code has changed
//	adversary.Search(ctx, 0, n, tell) // many seeds, without a test: as tally bench does
//
// Honest people follow the protocol by themselves (duty.go). A script says who is
// hostile, what hostile people leave out, and which messages they send besides;
// each is composed from its protobuf descriptor (compose.go), with fields that fit
// the state at that moment, and then bent (package bend): at limits, absent, repeated,
// under another name, about what is gone. So a script speaks of orders and units,
// not of bytes, and goes on meaning something when formats change.
//
// Messages go to the application's own handlers, on branches of one committed
// state: there is no consensus, no signature of transactions and no fee. Blocks
// begin and end as they do on a chain.
//
// What must never be (judge.go): a panic; a broken invariant of a module; anything
// stored that cannot be read; a lease, a dispute or an order that outlasts its own
// windows; an honest account that loses; hostile ones that gain without work;
// somebody's burden, or a validator's, far above what is paid for it.
//
// Files: attack.go writes the history of a seed, play.go plays a script, judge.go
// judges it, shrink.go makes it smaller. replica.go is all about units that several
// providers compute. live.go plays on a chain itself. search.go and spend.go serve tally bench.
//
// Invariants: a script and a world determine all that happens; nothing is drawn but
// when a script is written.
package adversary
