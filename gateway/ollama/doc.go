// Package ollama answers ollama's API: generate, chat, embed, embeddings, and the calls about models.
//
// Call [New] with what gives replies.
//
// What the API has and this gateway does not is refused by name, in the types that end in Refused. Options about machines (num_gpu, num_thread)
// change no reply and are ignored. A name may end in :latest. Options that are not given are ollama's defaults, except that nothing is
// penalised: ollama's own penalty looks at the last 64 tokens, ours at all.
//
// Invariants: every error has ollama's shape, {"error": …}, also within a stream. Every last line has the object tally, from which
// the reply can be asked for again.
//
// Source: ollama's docs/api.md, as its official clients speak it.
package ollama
