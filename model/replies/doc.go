// Package replies lets one language model reply to many at once.
//
// [Start] a [Server], and ask it by [Server.Reply]. What replies are under way form a batch: in each step every reply that has been read
// so far gets its next token, and what room is left goes to prompts, in chunks. A reply may begin and end at any step. What a prompt has in
// common with another sequence of the same owner, under way or over, is not read again. [Server.As] replies as a model that has another adapter: what
// no step reads together takes turns.
//
// Invariants: a reply has the tokens that its request alone would have, whatever is in the batch and in the cache: model/lm computes each
// token from its own sequence only. The caches of all sequences take at most Options.Bytes. A reply takes
// memory as it grows; when there is no more, those that came last are preempted, and go on later. Who waits to begin for longer than
// Options.Patience is refused. A panic ends the server with [ErrFailed], and not the process. A slow listener holds up nobody: its
// reply leaves the batch while others wait, and comes back when its tokens have been taken. When a reply's context ends, or nobody listens any more, it leaves the batch before the next step.
//
// Source: continuous batching is Orca's (OSDI 2022); taking over a prefix is what llama.cpp's server does with its slots;
// preemption by recomputing is vLLM's (SOSP 2023).
package replies
