// Package canon gives every value of the protocol one sequence of bytes and
// one hash.
//
// Encoding: unsigned integers are minimal LEB128, signed ones are zigzagged
// first; byte strings and lists carry their length in front; a field order is
// fixed by the code that writes it. Decoding accepts exactly the bytes that
// encoding would produce, so a value and its bytes stand for each other.
//
// Hashing: SHA-256 over a length-prefixed domain and a body; no two kinds of
// value share a domain (domain.go lists them all).
//
// Merkle trees have the shape of RFC 6962: a tree over n leaves splits at the
// largest power of two below n. A root also binds n, so a proof fixes a leaf's
// position as well as its value.
//
// Give a type a method Code ([Coded]), which walks its fields; [Marshal] and [Unmarshal] then
// write and read it. [Sum] hashes, [Root] makes a tree, and [Verify] checks a path in one.
//
// Invariant: nothing here allocates in proportion to a length that the input
// merely claims.
//
// Sources: RFC 6962 for trees; DWARF for LEB128.
package canon
