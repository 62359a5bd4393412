// Package consume is the role that buys: it reads an order that a person wrote,
// makes a problem of the files it names, posts it, hands the files over, follows
// the lease, and fetches and checks the result.
//
// A consumer needs no registration. It must stay until a quorum of custodians holds
// its files; from then on the order is carried out without it.
package consume
