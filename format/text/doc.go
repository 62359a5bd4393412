// Package text turns text into the tensors that a model is trained on, one
// token a character, and tokens back into text.
//
// Call [Read], [Split] and [Train], in this order, for a tokenizer; [Tokenizer.Encode] and
// [Records] make the tensor.
//
// A Tokenizer numbers the most frequent characters (Unicode code points) of a
// training text from 1 on, in ascending order of code point; 0 stands for every
// other character. Its file is JSON, in exactly one form:
//
//	{"type":"character","version":1,"characters":"\n !,.ABC…"}
//
// where the characters are those of the tokens 1, 2, 3, … in their order.
//
// Invariants: the same text gives the same vocabulary and the same records on
// every machine; what is held out is never seen in training, nor by the
// vocabulary; decoding what was encoded gives the text back where every
// character is known. Text is UTF-8 and is not normalised.
//
// Source: UTF-8 is RFC 3629; the file is our own.
package text
