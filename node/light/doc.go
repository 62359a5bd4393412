// Package light follows a chain from a block that somebody trusts to its newest, by
// signed headers alone, as a light client does.
//
// [Pin] notes a [TrustedBlock] in a home, and [Pinned] reads it. [Follower.Follow] goes from
// one to a later block by skipping: it jumps as far as more than a third of the validators
// that it trusts have signed, and looks between where they have not. [FollowPinned] does both.
//
// Invariants: nothing that a node says is believed, but what follows from the trusted block.
// Nothing is followed from a block that is older than [TrustingPeriod]. What is fetched is
// bounded in number and in bytes. A trusted block is in its file whole or not at all.
//
// Source: github.com/cometbft/cometbft/light, whose client checks each step; docs/spec/bundle.md.
package light
