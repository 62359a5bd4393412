// Package client is how a role speaks to a chain: it follows blocks, reads
// state and sends transactions of one account, each until it is in a block.
//
// Call [Dial] first, then [Client.Account]. [Client.Next] waits for a block, and
// [Account.Send] sends.
//
// Invariants: messages that are sent once are executed at most once; those of one Send together or
// not at all, whatever else fails. What one account sends at once shares transactions, which are
// under way at once, with consecutive sequences; whoever needs an order
// sends the next message when the last is in a block.
//
// Nothing that a node answers is trusted further than the role trusts that
// node; what matters is checked against roots by those who use it.
package client
