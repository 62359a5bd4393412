package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/internal/testkit/roletest"
	"github.com/tally-network/tally/node/blobs"
	"github.com/tally-network/tally/node/replay"
	"github.com/tally-network/tally/node/role"
)

// slow takes its time for each program.
type slow struct {
	engine.Executor
	takes time.Duration
}

func (s slow) Prepare(p *graph.Program) (engine.Runner, error) {
	time.Sleep(s.takes)
	return s.Executor.Prepare(p)
}

// ordersOf returns an Env that takes so long for each of two programs, and orders of the
// consumers named, whose files it has.
func ordersOf(t *testing.T, takes time.Duration, consumers ...string) (*role.Env, []*job.Lease) {
	t.Helper()
	env, _ := roletest.New(t, roletest.Me)
	first, _ := roletest.Lease(t, env)
	env.Jobs.Exec = slow{engine.Reference{}, takes}
	var out []*job.Lease
	for i, name := range consumers {
		l := *first
		l.Order.Consumer, l.Order.Problem.Seed = name, uint64(i)
		for _, f := range l.Order.Problem.Files {
			ref, err := blobs.RefOf(f)
			if err == nil {
				err = env.Store.Pin(blobs.Pin(l.Order.ID()), ref)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, &l)
	}
	return env, out
}

// One consumer's orders were loaded in the order in which they came, before anybody else's.
func TestOrdersOfOneConsumerLetOthersPass(t *testing.T) {
	env, leases := ordersOf(t, time.Second, "many", "many", "many", "many", "one", "two", "two")
	synctest.Test(t, func(t *testing.T) {
		loaded := make(chan string, len(leases))
		for i, l := range leases {
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				defer cancel()
				if _, err := env.Jobs.Get(ctx, l); err == nil {
					loaded <- l.Order.Consumer
				} else if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}()
			synctest.Wait()
			if i == 3 { // who no longer waits takes no turn
				cancel()
			}
		}
		var got []string
		for range len(leases) - 1 {
			got = append(got, <-loaded)
		}
		if want := []string{"many", "one", "many", "two", "many", "two"}; !slices.Equal(got, want) {
			t.Errorf("loaded for %v, want %v", got, want)
		}
	})
}

// A load that was given up, or that took too long, kept its turn for as long as it went on.
func TestSlowLoadGivesUpItsTurn(t *testing.T) {
	for _, c := range []struct {
		limit time.Duration // for an answer
		stop  time.Duration // until the first gives up by itself
		words string
	}{{15 * time.Minute, time.Hour, "not loaded within 15m"}, {0, time.Hour, "not loaded within 1m"}, {time.Hour, 10 * time.Minute, "context deadline exceeded"}} {
		env, leases := ordersOf(t, 20*time.Minute, "first", "second")
		synctest.Test(t, func(t *testing.T) {
			leases[0].Params.AnswerTime, leases[1].Params.AnswerTime = c.limit.Milliseconds(), time.Hour.Milliseconds()
			begun, failed := time.Now(), make(chan error)
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), c.stop)
				defer cancel()
				_, err := env.Jobs.Get(ctx, leases[0])
				failed <- err
			}()
			synctest.Wait()
			loaded := make(chan error, 1)
			go func() {
				_, err := env.Jobs.Get(t.Context(), leases[1])
				loaded <- err
			}()
			var unfit *replay.UnfitError
			var away *blobs.FetchError
			if err := <-failed; err == nil || !strings.Contains(fmt.Sprint(err), c.words) || errors.As(err, &unfit) || errors.As(err, &away) {
				t.Errorf("want %q, got: %v", c.words, err)
			}
			if err := <-loaded; err != nil || time.Since(begun) != time.Hour {
				t.Errorf("the second was loaded after %v: %v", time.Since(begun), err)
			}
		})
	}
}
