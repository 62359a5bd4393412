// Package replies lets one language model reply to many at once.
//
// [Start] a [Server], and ask it by [Server.Reply]. What replies are under way form a batch: in each step every reply that has been read
// so far gets its next token, and what room is left goes to prompts, in chunks. A reply may begin and end at any step. What a prompt has in
// common with another sequence of the same owner, under way or over, is not read again. [Server.As] replies as a model that has another adapter: what
// no step reads together takes turns.
//
// With Options.Speculative tokens are drafted, from what the sequence has said before or by a smaller model, and read in one step with the token before them
// (speculate.go). What a step takes is measured, and so are the odds of a draft: none is made that is not worth its time.
//
// Invariants: a reply has the tokens that its request alone would have, whatever is in the batch and in the cache: model/lm computes each
// token from its own sequence only. A draft is accepted if it is the token that is drawn at its place, by the reply's seed. What was read behind a refused one is forgotten:
// forms, penalties and pages never see it. The caches of all sequences take at most Options.Bytes. A reply takes
// memory as it grows; when there is no more, those that came last are preempted, and go on later. Who waits to begin for longer than
// Options.Patience is refused. A panic ends the server with [ErrFailed], and not the process. A slow listener holds up nobody: its
// reply leaves the batch while others wait, and comes back when its tokens have been taken. When a reply's context ends, or nobody listens any more, it leaves the batch before the next step.
//
// Source: speculative decoding is Leviathan's (ICML 2023), but for its sampling (docs/adr/0078-speculative-decoding.md). N-grams are prompt lookup
// decoding's, as in vLLM and llama.cpp. Continuous batching is Orca's (OSDI 2022); taking over a prefix is what llama.cpp's server does with its slots;
// preemption by recomputing is vLLM's (SOSP 2023).
package replies
