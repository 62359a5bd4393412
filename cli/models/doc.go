// Package models is the verbs about models of any kind, as ONNX files: tally model new, and what tally model show says of
// them. Call [New] and [Show.Run].
//
// Invariants: those of package cli.
package models

import (
	"io"
)

// Env is what verbs have of the command line.
type Env struct {
	Show     func(value any, text func(w io.Writer)) error // the result: as JSON, or as text
	AlsoRuns string                                        // annotation of a command that holds others, and does something by itself
}
