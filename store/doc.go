// Package store keeps content-addressed blobs on disk and gets missing ones
// from other machines.
//
// A blob is cut into raw blocks of 1 MiB, the last one shorter. A block is
// named by a CIDv1 (raw codec, SHA2-256), so its name proves its bytes. A blob
// is named by a Ref, a CID and a size, and the size says what the CID names:
// up to 1 MiB it is the only block; above, it is the index, one more block with
// the size and the block digests in canonical encoding under the domain "blob".
//
// Call [Open] first. [Store.Put] stores bytes under a pin, [Store.Fetch] brings what others
// have, and [Store.Get] reads.
//
// Invariants:
//   - No byte leaves the store, and none enters it from a Source, before its
//     block has matched its CID. A block that does not match on disk is removed
//     and reported as missing, so that it can be fetched again.
//   - A block appears under its name whole or not at all: temporary file, fsync,
//     rename. When Put, Pin or Fetch return, a power cut loses nothing of theirs.
//   - What a name pins was put under it, or given by the sources of a Fetch for it, block
//     by block: that a blob is here for others is no reason to hand it out under the name.
//   - GC and Delete never remove a block that a pin covers or that a running
//     Put or Fetch needs.
//   - The blocks never take more than the quota; sizes from outside are compared
//     with limits before anything is allocated or asked for.
//
// One process at a time uses a directory: the lock is on the role's data
// directory, of which this is a part. All methods may be called concurrently.
//
// Source: CID specification (github.com/multiformats/cid); the layout is ours.
package store
