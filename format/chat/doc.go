// Package chat turns a conversation into the prompt of a language model, by the template that the
// model carries: the text that transformers' apply_chat_template gives, byte for byte.
//
// Call [FromFolder] for a model of Hugging Face's, [FromGGUF] for a GGUF file, or [Parse] for a
// template itself. Then call [Template.Render] for each [Conversation], or [Template.Replies] to learn from its
// replies; [ReadMessages] reads one. A model without a template
// has no chats: the error is [ErrNoTemplate].
//
// Invariants: a Template never changes, and several goroutines may use one. The same conversation
// always gives the same text, since even its date is a field of it. Templates are code of
// strangers: package jinja bounds their steps, memory and text, and they reach nothing but the
// conversation and the names of special tokens. What a template refuses of a conversation is a
// [jinja.Refusal].
//
// Source: transformers' tokenization_utils_base.py and utils/chat_template_utils.py, whose
// results the tests hold; for GGUF also github.com/ggml-org/ggml, docs/gguf.md.
package chat
