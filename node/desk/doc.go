// Package desk lets many orders of one home be under way at once, each followed by a process of
// its own. One of these has the home open: its desk keeps files, posts orders, hands files
// over and fetches results, for itself and for the others. They reach it by a socket. When it
// ends, at whatever moment, one of them opens the home in its place, and they go on.
//
// Call [Open], then the methods of [Desk]. What only asks the chain, or tries a step, needs no
// desk: each process does so by itself.
//
// Invariants:
//   - What a desk is asked for may be asked for again, of it or of the next: an order is named
//     by its content, and the chain refuses to take it twice.
//   - Nobody but the home's owner reaches a desk: its socket is in a directory of the owner's alone.
//   - What is read from a socket is bounded before it is kept.
//
// Source: docs/adr/0040-one-home-many-orders.md.
package desk
