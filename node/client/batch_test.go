package client_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/x/provider"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// ready fails: alice is nobody's provider.
func ready() sdk.Msg {
	return &workv1.MsgReady{Provider: alice.String(), Order: strings.Repeat("0", 64)}
}

// What is sent at once shares transactions. Of each, what fails fails alone, and the others
// are executed once.
func TestMessagesShareTransactions(t *testing.T) {
	t.Parallel()
	c := newChain(t, 400*time.Millisecond)
	dear := banktypes.NewMsgSend(alice.Address, bob.Address, coin.Of(1<<60)) // more than she has
	for name, bad := range map[string][]sdk.Msg{
		"none":                {},
		"one of their class":  {dear},
		"some of each class":  {dear, ready(), dear, ready()},
		"nothing else but it": {dear, dear, dear},
	} {
		account, before := c.Account(alice.Key), c.received()
		good := 40
		if len(bad) == 3 {
			good = 0
		}
		var group sync.WaitGroup
		var mu sync.Mutex
		shared := map[string]int{}
		for range good {
			group.Go(func() {
				r, err := account.Send(t.Context(), pay(1))
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				mu.Lock()
				defer mu.Unlock()
				shared[string(r.Hash)]++
			})
		}
		for _, m := range bad {
			group.Go(func() {
				_, err := account.Send(t.Context(), m)
				if _, move := m.(*workv1.MsgReady); err == nil || move != errors.Is(err, provider.ErrNotRegistered) {
					t.Errorf("%s: what fails gives %v", name, err)
				}
			})
		}
		group.Wait()
		if got := c.received() - before; got != uint64(good) {
			t.Errorf("%s: %d messages were executed %d times", name, good, got)
		}
		if t.Logf("%s: %d messages in %d transactions", name, good, len(shared)); len(shared) > good/2 {
			t.Errorf("%s: %d messages took %d transactions", name, good, len(shared))
		}
	}
}

// Messages of one Send are executed together or not at all, whatever they share a transaction with.
func TestOneSendIsWhole(t *testing.T) {
	t.Parallel()
	c := newChain(t, 400*time.Millisecond)
	account := c.Account(alice.Key)
	dear := banktypes.NewMsgSend(alice.Address, bob.Address, coin.Of(1<<60))
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if _, err := account.Send(t.Context(), pay(100), pay(10)); err != nil {
				t.Error(err)
			}
		})
		group.Go(func() {
			if _, err := account.Send(t.Context(), pay(1), dear); err == nil {
				t.Error("more than she has was sent")
			}
		})
	}
	group.Wait()
	if got := c.received(); got != 880 {
		t.Errorf("bob has %d, want 880", got)
	}
}

// Who gives up takes nothing from those that share its transaction, and what has not been signed is
// not sent any more.
func TestSenderLeavesABatch(t *testing.T) {
	t.Parallel()
	c := newChain(t, 400*time.Millisecond)
	account := c.Account(alice.Key)
	impatient, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	c.forget.Store(true)
	for i := range 24 {
		group.Go(func() {
			if i%2 == 0 {
				if _, err := account.Send(t.Context(), pay(1)); err != nil {
					t.Error(err)
				}
			} else if _, err := account.Send(impatient, pay(100)); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	until(t, "transactions", func() bool { return c.forgot.Load() >= 2 })
	cancel()
	c.forget.Store(false)
	group.Wait()
	if got := c.received(); got%100 != 12 || got > 1212 {
		t.Errorf("bob has %d utally of twelve payments of 1 and at most twelve of 100", got)
	}
	gone, stop := context.WithCancel(t.Context())
	stop()
	if _, err := account.Send(gone, pay(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("who has gone already gets %v", err)
	}
}

// BenchmarkSend measures what an account with many duties at once gets done, by whether they share
// transactions.
func BenchmarkSend(b *testing.B) {
	for _, x := range []struct {
		name     string
		messages int
	}{{"alone", 1}, {"shared", 0}} {
		b.Run(x.name, func(b *testing.B) {
			c := newChain(b, 500*time.Millisecond)
			account := c.Account(alice.Key)
			account.Messages = x.messages
			const duties = 50
			for b.Loop() {
				if _, errs := together(b.Context(), account, duties); errors.Join(errs...) != nil {
					b.Fatal(errors.Join(errs...))
				}
			}
			b.ReportMetric(duties*float64(b.N)/b.Elapsed().Seconds(), "duties/s")
		})
	}
}
