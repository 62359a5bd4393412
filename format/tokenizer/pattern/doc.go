// Package pattern matches the regular expressions of tokenizer files.
//
// Call [Compile], then [Pattern.Find]. Go's own expressions have no look-ahead, and other
// libraries follow Go's Unicode or .NET's. Here classes are those of package chars, and
// the syntax is the part of Oniguruma's that tokenizers use. That is alternatives, groups,
// classes, greedy, lazy and possessive repetition, look-ahead, line anchors, and (?i:…).
// Whatever else an expression holds is refused when it is compiled, by name.
//
// Matching goes back as Oniguruma does, so that the same alternative wins. A text in which
// that takes too many steps gives [ErrSteps].
//
// Invariants: a match is found in steps that grow with the text's length alone, or not at
// all. What is compiled never changes, so that several goroutines may use it.
//
// Source: Oniguruma's RE document, Ruby's syntax.
package pattern
