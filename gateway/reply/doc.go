// Package reply turns a request of any API into tokens, and tokens back into text, once for all of them.
//
// Fill an [Ask] and call [Service.Begin], which opens the model, writes the prompt, counts its tokens, and waits for room.
// Then range over [Run.Events], or call [Run.Collect], and in any case [Run.Close]. [Service.Embed] gives vectors.
// What answers behind it is a [Model]; [Models] has them by name.
//
// Invariants: where a stop string ends a reply depends on the text alone, not on where tokens begin. A piece of text is whole
// UTF-8. Without a seed one is drawn, and [Run.Report] tells it, so that every reply can be asked for again. Choice i of a
// request has the seed plus i. Who leaves ends the work: no goroutine outlives a run.
//
// Sources: the forms of tool calls are those that models were trained on: NousResearch's Hermes function calling,
// Meta's Llama 3.1 prompt format, and mistral-common.
package reply
