// Package statesync has a node begin at the newest state of a chain instead of its first block.
//
// [Recover] comes first at each start: it removes what a killed restore has left. [Run] restores a
// snapshot that peers offer, into the databases of a node without blocks. It then reads back the
// headers by which older evidence is checked. [Open] takes snapshots and serves them; call
// [AllowPruning] before the application is opened. [Bootstrap] gives CometBFT a state that was made
// otherwise.
//
// Invariants: a node that begins has the state whose hash the chain's validators have signed, or
// none. Headers from before it are the chain's, whoever told them. What peers offer is bounded in
// number, in bytes and in depth before it is read. A marker file exists from before the first
// write of a restore until after the last. A node that was killed in between begins anew. Keys, and
// what a validator signed last, are never touched.
//
// Source: CometBFT's state sync and light client; the Cosmos SDK's snapshots, of which it reads
// and writes format 3.
package statesync
