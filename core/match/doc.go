// Package match says which providers an order may be given to, by what it needs of them and what each is
// capable of, and how much a validator may lead.
//
// Begin with [Needs], which an order carries. [Needs.Under] enters what a chain's [Tiers] stand for.
// [Needs.Meets] then holds one provider's [Capability] against it, and [Census] counts those who fall short,
// by condition. [Needs.Suffices] is about a team: how fast it is together, and whether it is done by the
// deadline of a [Plan].
//
// [Lapse] is what a lead has lost of that by failing.
//
// A part of a capability is [Declared]: nobody has proved it. Its speed is measured, as a [Pace]: by a probe
// (core/probe), or without one by work that was verified and paid for.
//
// Invariants: one table of conditions checks, meets and explains. A need more never makes a provider meet
// what it did not meet. Without a probe, a speed is never above what was computed, spread over ten
// minutes, nor above 10¹² FLOP/s.
//
// Sources: conditions of DKLabs.AI, §7; tiers of DCI; the project's specification is docs/spec/market.md.
package match
