// Package interrupt lets verbs end while something goes on that cannot be stopped. Call [Run].
//
// Invariants: those of package cli.
package interrupt

import "context"

// Run runs f, but returns once ctx is done. Some computations cannot be
// stopped; the process ends next.
func Run[T any](ctx context.Context, f func() (T, error)) (T, error) {
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
