// Package split cuts text into words, as the pre-tokenizers of tokenizer files do.
//
// Call [NewRegex] for a split by a regular expression, or make one of the other types, and then
// [Splitter.Split]. Each type is the pre-tokenizer of that name in Hugging Face's files.
//
// The expressions of GPT-2, Llama 3 and Qwen 2, which most models use, have scanners written by
// hand. Others go through package pattern, which is slower.
//
// Invariants: pieces come in the order of the text, none is empty, and each lies in the text
// unless something was put before it or in its place. What is given to Split is UTF-8,
// and so is each piece.
//
// Source: github.com/huggingface/tokenizers.
package split
