// Package files opens language models as people have them: GGUF files, and folders as Hugging Face has them.
//
// Call [Open] for all of a model: weights, tokenizer, chat template, and the tokens that end its replies. [ReadTexts] and [Texts.Parse] do without
// weights. A [Manifest] is what a model is, in hashes: who has no weights gets all else by it, from whomever.
//
// Invariants: the files have bounds before they are read. Two copies of a model have one manifest, in however many files their weights lie.
//
// Sources: Hugging Face's generation_config.json and tokenizer_config.json, and ggml's docs/gguf.md.
package files
