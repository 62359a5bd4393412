// Package models is the verbs about models of any kind, as ONNX files: tally model new, and what tally model show says of
// them. Call [New] and [Show.Run].
//
// Invariants: those of package cli.
package models

import (
	"context"
	"io"
)

// Env is what verbs have of the command line.
type Env struct {
	Show     func(value any, text func(w io.Writer)) error // the result: as JSON, or as text
	AlsoRuns string                                        // annotation of a command that holds others, and does something by itself
}

// interruptible runs f, but returns once ctx is done: the process ends next.
func interruptible[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := f()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
