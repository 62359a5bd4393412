// Package statesync has a node begin at the newest state of a chain instead of its first block.
//
// [Open] has a node take snapshots of its application's state, and give them to others. [Run]
// restores one that peers offer, into the databases of a node that has no block yet, and reads
// back the headers by which evidence from before is checked. [Resume] comes before either: it
// clears away what a kill has left of a restoring.
//
// Invariants: a node that begins has the state whose hash the chain's validators have signed, or
// none. Headers from before it are the chain's, whoever told them. What peers offer is bounded in
// number, in bytes and in depth before it is read. A marker lies in the node's directory from
// before the first write of a restoring to after the last, so a node that was killed between them
// begins anew. Keys, and what a validator signed last, are never touched.
//
// Source: CometBFT's state sync and light client; the Cosmos SDK's snapshots, of which it reads
// and writes format 3.
package statesync
