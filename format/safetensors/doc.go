// Package safetensors reads and writes named tensors as safetensors files.
//
// A file is the length of its header (eight bytes, little-endian), the header and the elements,
// without gaps. The header is a JSON object that gives every tensor's type, shape and place.
//
// [Write] gives the one canonical file of a set of tensors: by element type, the
// larger first, so that every element is aligned, then by name; the header in
// that order, without optional characters, padded with spaces to eight bytes.
// It is the file that the reference implementation writes. [Read] takes any file
// that keeps the format's rules, from untrusted bytes. [List] reads no elements, and [ReadOne] those of one tensor.
//
// Invariants: reading allocates at most the size of the file and 64 MiB, and
// every place, type and shape is checked before an element is loaded.
//
// Source: safetensors format (github.com/huggingface/safetensors).
package safetensors
