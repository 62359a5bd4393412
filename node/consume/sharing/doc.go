// Package sharing gives files away by their CIDs, from peer to peer, and fetches them.
//
// [Share] cuts files as a store does, and hands their blocks to whoever asks for them. [URI.Copy] fetches what a [URI] names:
//
//	tally:CID.SIZE?filename=NAME&peer=/ip4/…/tcp/…/p2p/ID
//
// Invariants: what is fetched is what the CID names, whoever gave it and whatever was there of it before. Who shares a file gives away
// its blocks, and nothing else of the machine. A file that changes while it is shared is given no more.
//
// Source: package store's blocks and package p2p's protocol for them; the URI is our own.
package sharing
