// Package tabs keeps the tabs of sessions with language models on the disk, for either side, and has the messages by which the sides deal with each
// other.
//
// Open a [Store]. [Store.Begin] makes the [Tab] of a session, which is there again after a restart. A provider calls [Tab.Take] on vouchers, [Tab.Hold] before
// it computes and [Tab.Bill] after; a consumer calls [Tab.Ask], [Tab.Accept], [Tab.Approve] and [Tab.Pay]. The protocols are in messages.go.
//
// Invariants: what is signed was on the disk before, so no number is ever signed twice, whenever a process ends or the power fails. A provider holds no more
// work than is paid for. A consumer owes nothing that it has not asked for.
//
// Source: docs/adr/0066-sessions.md, docs/adr/0069-served-models.md.
package tabs
