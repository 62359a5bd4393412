// Package api has what the gateway's HTTP APIs share: how a body is read, how a stream is written, and what a fault is.
//
// An API is a table of [Route] and a function that writes a [Fault] in its own shape; see [API]. A route reads its
// body with [Read], refuses what it cannot do with [Refuse], and answers with [Write], or with [Events] or [Lines] piece by piece.
//
// Invariants: a body is bounded in bytes by whoever serves it, and in nesting here. A number, a string or a list in the
// wrong place is named in the fault, with what is wanted. A client that does not read is given up after a while.
//
// Sources: RFC 8259 for JSON; the WHATWG's HTML standard, §9.2, for server-sent events; ndjson.org for lines.
package api
