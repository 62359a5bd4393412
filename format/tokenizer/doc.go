// Package tokenizer turns text into the tokens of a model and back, as Hugging Face's tokenizers
// library does: the same ids, or an error.
//
// Call [Parse] for a tokenizer.json, or [FromGGUF], [GGUF.Spec] and then [New] for the tokenizer
// of a GGUF file. Then call [Tokenizer.Encode], and [Tokenizer.Decode] or [Tokenizer.Stream].
//
// A tokenizer finds its added tokens, changes the text between them (package normalize), cuts
// it into words (package split), makes tokens of each (package model), and puts special
// tokens around all. Decoding goes through package decode.
//
// What is not supported is refused by name when the file is read: models of whole words, the
// normalizer ByteLevel, dropout, and keys that are not known. Regular expressions go through package pattern, which has the classes of the reference and bounds its steps. A library
// would have had other classes. Truncation and padding that a file asks for are read
// past: Encode gives all tokens of a text and no others.
//
// Invariants: a Tokenizer never changes, and several goroutines may use one. Text that is not
// UTF-8 is refused. Reading a file takes at most 64 MiB of it, and memory in
// proportion; its depth is bounded, and a key that comes twice is refused.
//
// Source: github.com/huggingface/tokenizers, whose results the tests hold; for GGUF also
// github.com/ggml-org/llama.cpp.
package tokenizer
