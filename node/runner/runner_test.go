package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	rpc "github.com/cometbft/cometbft/rpc/core"
)

// A validator that joined while its node read old blocks ended with the node's refusal, at each start.
func TestRegisteringWaitsUntilTheNodeHasCaughtUp(t *testing.T) {
	refused, other := fmt.Errorf("RPC error -32603 - Internal error: %w", rpc.ErrEndpointClosedCatchingUp), errors.New("no stake")
	for name, c := range map[string]struct {
		answers []error
		patient time.Duration
		want    error
		calls   int
	}{
		"caught up":        {[]error{nil}, time.Hour, nil, 1},
		"catches up":       {[]error{refused, refused, nil}, time.Hour, nil, 3},
		"refused for good": {[]error{refused, other}, time.Hour, other, 2},
		"told to stop":     {[]error{refused, refused, refused}, syncPause + 1, context.DeadlineExceeded, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithTimeout(t.Context(), c.patient)
				defer stop()
				calls := 0
				err := onceCaughtUp(ctx, slog.New(slog.DiscardHandler), func() error {
					calls++
					return c.answers[calls-1]
				})
				if !errors.Is(err, c.want) || calls != c.calls {
					t.Errorf("%v after %d calls, want %v after %d", err, calls, c.want, c.calls)
				}
			})
		})
	}
}
