// Package syntax reads the language of package jinja: a template's text to statements and expressions.
//
// Call [Parse]. What it returns is a [Block] of [Stmt], which hold [Expr]; each is one of the structs of node.go.
//
// Invariants: a tree never changes after Parse. A template has a bounded length, a bounded number of nodes, and a bounded depth. Names that Jinja
// hides in a part of a template are found before it is rendered (symbols.go).
//
// Source: github.com/pallets/jinja 3.1: its lexer, its parser, and its compiler's symbols.
package syntax

// Bounds of a template.
const (
	MaxSource = 1 << 20 // bytes

	maxNodes   = 1 << 17
	maxNesting = 128 // expressions and blocks in each other, as they are written
)
