// Package consume is the role that buys. It reads an order that a person wrote, makes a problem
// of the files it names, and posts it. Then it hands the files over, follows the lease, and
// fetches and checks the result.
//
// A consumer needs no registration. It must stay until a quorum of custodians holds
// its files; from then on the order is carried out without it.
//
// Call [ReadOrder] for an order file of either kind, [OrderFile].Draft for a draft of it, and
// [Draft.Order] for the order. Unless [FindEarlier] finds it, [Keep] its files, and [Post] it while
// [Serve] hands them over. [Follow] it, and [Deliver] the model, or [DeliverResults] of a batch.
//
// Invariant: what was paid is not paid again, if callers take up what [FindEarlier] finds.
//
// Source: docs/spec/lease.md; docs/adr/0007-consumer-hands-over.md.
package consume
