// Package lm turns language models that people download into canonical graphs.
//
// Call [Open] on a folder as Hugging Face has them, then [Model.Graph]: the graph of some tokens that follow others. It takes
// the tokens, and the keys and values of what came before; it gives the logits of each token, and its keys and values. So one
// function says what serving is: a prompt is some tokens after none, the next token is one after many, a check is any tokens of
// a reply.
//
// To serve, call [Model.Stages] and [Stages.Step], which reads tokens of several [Sequence]s at once, and [Model.NewSampler], which draws the
// next ones. A [Request] is all that a reply follows from.
//
// [Model.Adapted] gives the model with a LoRA adapter: a model as any other, which shares its base's weights and stages. A step reads tokens of several
// of them together (adapter.go, docs/adr/0076-adapters.md).
//
// A family is data (families.go): which norms, which biases, how far layers look back. One graph serves them all
// (graph.go). What is not listed there is refused by name.
//
// Invariants: a token's logits, keys and values do not depend on which tokens are computed with it, nor on what follows it.
// Positions are absolute. Nothing follows from a clock, a map's order or a float computed outside of the graph.
//
// Source: config.json and the modelling code of Hugging Face transformers 5, for each family that families.go names; for adapters PEFT 0.21, and for steps of several
// S-LoRA (MLSys 2024), whose adapters are computed beside the base's products as well.
package lm
