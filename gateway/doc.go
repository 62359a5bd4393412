// Package gateway serves HTTP APIs in front of language models, so that unchanged clients of OpenAI, Anthropic and ollama work.
//
// Call [New] with the models, and [Server.Serve] with a listener. Keys come from [OpenKeys]. The APIs are in the packages openai,
// anthropic and ollama; what they share in reply (requests to tokens, tokens to text) and api (bodies, streams, faults).
//
// Invariants: what a request may take is bounded before it is taken: bytes of its head and body, replies that are computed
// at once, requests that wait, the time of each. Who is refused for want of room is told when to come again. When a client leaves, the work
// for it ends. An address that others can reach is not served without keys. On loopback, where any key is accepted, a web page cannot
// speak to the gateway: Host and Origin must be of this machine.
//
// Sources: docs/gateway.md says what is supported; RFC 9110 for HTTP; the Prometheus text format and OpenAPI 3.1.
package gateway
