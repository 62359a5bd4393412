// Package openai answers OpenAI's API: models, chat completions, completions, embeddings, and responses.
//
// Call [New] with what gives replies.
//
// What the API has and this gateway does not is refused by name, in the type refused of each request; what changes no reply
// (user, metadata, store: false) is accepted and ignored. Some fields go beyond it, as those of other servers do: top_k, min_p,
// repetition_penalty. A last message of the assistant is gone on with.
//
// Invariants: every error has OpenAI's shape, also within a stream. Every reply, and the last piece of every stream before its usage, has
// the object tally, from which the reply can be asked for again.
//
// Source: OpenAI's API reference, as its official clients speak it.
package openai
