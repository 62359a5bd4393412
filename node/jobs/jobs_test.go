package jobs_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tally-network/tally/internal/testkit/roletest"
	"github.com/tally-network/tally/node/blobs"
)

func TestWorkIsLoadedOnce(t *testing.T) {
	env, _ := roletest.New(t, roletest.Me)
	l, j := roletest.Lease(t, env)
	if env.Jobs.Has(l) {
		t.Fatal("it has work that it has not loaded")
	}
	brief, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := env.Jobs.Await(brief, l); !errors.Is(err, context.DeadlineExceeded) || env.Jobs.Has(l) {
		t.Fatalf("waited for what nobody loads: %v", err)
	}
	waited := make(chan error, 1)
	go func() { waited <- env.Jobs.Await(t.Context(), l) }()
	first, err := env.Jobs.Get(t.Context(), l)
	if err != nil || first.Step.Commitment.Root() != j.Step.Commitment.Root() {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Fatal(err)
	}
	if again, err := env.Jobs.Get(t.Context(), l); err != nil || again != first || !env.Jobs.Has(l) {
		t.Fatalf("loaded again, %v", err)
	}
	if pins := env.Store.Pins(); !slices.Contains(pins, blobs.Pin(l.Order.ID())) {
		t.Errorf("the files are not kept: %v", pins)
	}

	other := *l
	other.Order.Problem.StepFLOPs++
	roletest.Lend(t, env, &other)
	var missing *blobs.FetchError
	if _, err := env.Jobs.Get(t.Context(), &other); err == nil || errors.As(err, &missing) || !strings.Contains(err.Error(), "do not match") {
		t.Errorf("another order: %v", err)
	}
}
