// Package session is the money of one consumer and one provider of a language model, from the terms that
// both sign to the settlement.
//
// The consumer locks an escrow and the provider reserves stake. Off the chain each request is then answered with
// a [Receipt], and paid with a [Voucher] before it is made. Both keep a [Tab] of that. On the chain
//
//	Apply(Session, Event) → (Session, []Effect, error)
//
// is all that happens. Two transactions serve a session of any length: one opens it, one ends it.
//
// Begin with [Terms], then [Begin]. Events are what people and the clock do; effects are what the chain must do with
// escrow and stake. Nothing here reads a clock or touches an account.
//
// # Invariants
//
//   - What was locked is what is in escrow, paid, burnt, refunded and forfeit together ([Session.Check]).
//   - A provider is never paid more than vouchers say, whoever posts them, in whatever order and however often.
//   - A tab is paid for before it grows, and at most one instalment of [Credit] is paid for and not settled. So who deals
//     with somebody who vanishes or lies loses one instalment at most.
//   - What is signed names its session, and a session names its chain: nothing counts elsewhere.
//   - Amounts are exact; a price is rounded up to a whole utally for each receipt, in favour of the provider, and so is what
//     is burnt, once over all that a session pays. Credit and rewards are rounded down.
//
// Source: docs/adr/0066-sessions.md.
package session
