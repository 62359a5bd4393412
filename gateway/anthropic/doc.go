// Package anthropic answers Anthropic's API: messages, and how many tokens they have.
//
// Call [New] with what gives replies.
//
// What the API has and this gateway does not is refused by name, in the type refused; what changes no reply (metadata, cache_control)
// is accepted and ignored. A seed comes by the header [reply.SeedHeader]. A last message of the assistant is gone on with.
//
// Invariants: every error has Anthropic's shape, also within a stream. Blocks of a stream come one after the other, each
// opened and closed. Every reply has the object tally, from which it can be asked for again.
//
// Source: Anthropic's API reference, as its official clients speak it.
package anthropic
