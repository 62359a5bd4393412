// Package jinja renders the templates that language models carry for their chats, as transformers
// renders them: the same bytes, or an error.
//
// Call [Parse] for a template's source, then [Template.Render] with what it may know. Values come
// from [FromJSON], or are strings, truth values, lists and dicts.
//
// It has the part of Jinja2 that such templates use, in the environment that transformers makes:
// blocks are trimmed, lists and dicts cannot be changed, tojson escapes no HTML, and there are
// break, continue, generation, raise_exception and strftime_now. What names other templates
// (include, import, extends, block), what is random, and what prints an address is refused.
//
// Package syntax reads templates; this package evaluates what it gives.
//
// It is an interpreter of its own because no library for Go holds both needs. Rendering has to be
// exact down to Python's repr, lazy filters and scopes; and templates come from strangers, so that
// each step and each byte has to be counted. The libraries that were tried count neither.
//
// Invariants: a Template never changes, and several goroutines may use one. Rendering reads no file,
// clock or random number. It takes at most [MaxSteps] steps, makes at most [MaxBytes] bytes of
// values and [MaxOutput] of text, and never nests deeper than its bounds. The same template and
// values give the same text. A value that Python would hold in more than 64 bits is refused when
// it is computed with.
//
// Source: github.com/pallets/jinja 3.1, CPython's documentation of str, and transformers'
// chat_template_utils.py, whose results the tests of package chat hold.
package jinja

// Bounds of a template, and of rendering it.
const (
	MaxSteps  = 5_000_000 // expressions and statements; 64 bytes that are made or searched count as one
	MaxBytes  = 128 << 20 // of all values that are made
	MaxOutput = 16 << 20  // bytes of text
	MaxRange  = 100_000   // items of a range, as in Jinja's sandbox

	maxDepth  = 1024 // expressions and calls in each other, as they are computed
	maxValues = 100  // values in values, where they are compared or printed
	maxDigits = 4300 // of a number in JSON, as in Python
)
