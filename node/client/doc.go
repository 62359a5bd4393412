// Package client is how a role speaks to a chain: it follows blocks, reads
// state and sends transactions of one account, in order, each until it is in a
// block.
//
// Nothing that a node answers is trusted further than the role trusts that
// node; what matters is checked against roots by those who use it.
package client
