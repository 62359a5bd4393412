package module_test

import (
	"context"
	"errors"
	"testing"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// What one order breaks at the end of a block, be it by a panic, stops no chain.
func TestAttempt(t *testing.T) {
	ctx, _, _ := chaintest.Store(t)
	for name, f := range map[string]func(context.Context) error{
		"error": func(context.Context) error { return errors.New("trouble") },
		"panic": func(context.Context) error { var none []int; return errors.New(string(rune(none[0]))) },
	} {
		if err := module.Attempt(ctx, f); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := module.Attempt(ctx, func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
}
