// Package gguf reads and writes models as GGUF files: metadata, and named weights that are quantised
// in blocks.
//
// A file is a header and the weights. The header is a magic number, a version, two counts, pairs of
// keys and values, and for each weight its name, shape, type and place. Weights are aligned. All
// numbers are little-endian. What types of weights mean is defined by package quant; shapes
// are in row-major order here, in which files have them backwards.
//
// Call [Read] for the header. [File.Text] and its like give values by key. [File.Find] gives a weight
// by name, [File.Packed] its bytes, [File.Stored] these as a tensor, and [File.Float32] its elements. [Write] writes the one file of
// given pairs and weights: version 3, weights in the order and at the places that ggml wants.
//
// Invariants: reading the header allocates at most its size, which [MaxHeader] bounds, and 64 MiB. No
// key and no name is there twice. Every weight is of whole blocks, inside the file, aligned, and
// shares no byte with another. A File never changes, and may be used by several goroutines if its
// source may.
//
// Source: GGUF specification (github.com/ggml-org/ggml, docs/gguf.md) and ggml's reader, gguf.cpp.
package gguf

// Limits of a file. The header is read whole, so it has bounds; weights have none but their own.
const (
	MaxHeader   = 64 << 20 // bytes before the weights
	MaxValue    = 16 << 20 // bytes of a value, as a tokenizer's merges may have them
	MaxElements = 1 << 21  // of an array
	MaxDepth    = 4        // of arrays in arrays
	MaxPairs    = 1 << 16
	MaxKey      = 256 // bytes
	MaxTensors  = 1 << 16
	MaxName     = 64      // bytes of a weight's name, as in ggml
	MaxRank     = 4       // axes of a weight, as in ggml
	MaxAlign    = 1 << 16 // bytes
)

const (
	magic = "GGUF"
	// alignKey names the bytes of which weights' places are a multiple.
	alignKey     = "general.alignment"
	defaultAlign = 32
)
