package devnet

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tally-network/tally/node/home"
	"github.com/tally-network/tally/node/role"
)

// Whoever leaves has its home until it does nothing more: else the next to enter works in it beside the former.
func TestHomesAreHeldToTheEnd(t *testing.T) {
	c := small(t.TempDir())
	var works, together atomic.Int32
	c.Run = func(ctx context.Context, h *home.Home, _ *role.Env) error {
		if h.Settings.Name == "guest" {
			if works.Add(1) > 1 {
				together.Add(1)
			}
			defer works.Add(-1)
		}
		<-ctx.Done()
		time.Sleep(300 * time.Millisecond) // it was at something
		return ctx.Err()
	}
	n, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, n)
	for range 3 {
		m, err := n.Enter(t.Context(), home.Settings{Role: home.Challenger, Name: "guest"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond) // so that it is at something
		if err := m.Leave(); err != nil {
			t.Fatal(err)
		}
		if works.Load() != 0 {
			t.Error("its home is closed, and it works there")
		}
	}
	if together.Load() > 0 {
		t.Error("two worked in one home")
	}
}
