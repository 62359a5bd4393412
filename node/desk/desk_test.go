package desk_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tally-network/tally/core/canon"
	supplyv1 "github.com/tally-network/tally/gen/tally/supply/v1"
	"github.com/tally-network/tally/internal/testkit/nettest"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/desk"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/home"
	"github.com/tally-network/tally/node/role"
)

// soak is how many orders are under way at once, beside the few of an ordinary test.
const soak = "TALLY_SOAK"

// Many orders of one home are under way at once. Whoever has the home open ends, time after time,
// and every order still gives what it gives alone.
func TestCrashOfDesks(t *testing.T) {
	orders := 8
	switch n, err := strconv.Atoi(os.Getenv(soak)); {
	case err == nil && n > 0:
		orders = 50
	case testing.Short():
		t.Skip("takes half a minute")
	}
	n, err := devnet.Start(t.Context(), devnet.Config{
		Dir: t.TempDir(), Validators: 2, Providers: 2, LeaveConsumer: true,
		CommitTimeout: 50 * time.Millisecond, EmptyInterval: 100 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	}()
	if err := n.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := buyers{t: t, dir: filepath.Join(n.Dir(), "consumer"), at: client.Endpoints{RPC: "http://" + n.Validators[0].Node.Addrs().RPC, GRPC: n.Validators[0].Node.Addrs().GRPC}}
	var wait sync.WaitGroup
	for seed := range orders {
		wait.Go(func() {
			if err := all.buy(t.Context(), uint64(seed)+1); err != nil {
				t.Errorf("order %d: %v", seed, err)
			}
		})
	}
	wait.Wait()
	r, err := supplyv1.NewQueryClient(n.Validators[0].Env.Chain.Conn).Check(t.Context(), &supplyv1.QueryCheckRequest{})
	if err != nil || !r.Ok {
		t.Fatalf("the ledgers: %+v, %v", r, err)
	}
	t.Logf("%d orders; the home went from hand to hand %d times", orders, all.handed)
	if all.handed < 5 {
		t.Errorf("the home went from hand to hand %d times only", all.handed)
	}
	if left, err := filepath.Glob(filepath.Join(all.dir, "desk")); err != nil || len(left) > 0 {
		t.Errorf("%v stays in the home", left)
	}
}

// buyers are what would be processes: each has a lock, a connection and a desk of its own.
type buyers struct {
	t   *testing.T
	dir string
	at  client.Endpoints

	mu     sync.Mutex
	handed int
}

func (b *buyers) open(ctx context.Context) (*desk.Desk, error) {
	return desk.Open(ctx, desk.Options{Dir: b.dir, Open: func() (*home.Home, error) {
		h, err := home.Open(b.dir)
		if err == nil {
			b.mu.Lock()
			b.handed++
			b.mu.Unlock()
		}
		return h, err
	}})
}

// heldBlocks is how long one has the home open before it leaves.
const heldBlocks = 4

// buy brings one order to its end. It leaves whenever it has had the home open for some blocks.
func (b *buyers) buy(ctx context.Context, seed uint64) (err error) {
	d, err := nettest.NewDraft(ctx, func(s *consume.Spec) {
		s.Problem.Rounds, s.Problem.Seed, s.Conditions.Expires = 1, seed, consume.Duration(10*time.Minute)
	})
	if err != nil {
		return err
	}
	want, err := d.Honest(ctx)
	if err != nil {
		return err
	}
	c, err := client.Dial(ctx, b.at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	env := role.New(role.Parts{Chain: c, Log: slog.New(slog.DiscardHandler)})

	at, err := b.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, at.Close()) }()
	as, err := at.Buyer(ctx)
	if err != nil {
		return err
	}
	o, err := d.Order(as)
	if err != nil {
		return err
	}
	if err := at.Post(ctx, &o, d.Body); err != nil {
		return err
	}
	if err := at.Post(ctx, &o, d.Body); err != nil {
		return fmt.Errorf("posted again: %w", err)
	}
	var p consume.Progress
	for p.Lease == nil || !p.Ended() {
		held := 0
		p, err = consume.Follow(ctx, env, o.ID(), func(consume.Progress) bool {
			if at.Own() {
				held++
			}
			return held > heldBlocks
		})
		if err != nil {
			return err
		}
		if err := at.Close(); err != nil { // others must go on, and this one comes again
			return err
		}
		if at, err = b.open(ctx); err != nil {
			return err
		}
	}
	if l := p.Lease; l.Reason != "" || l.FinalRoot() != want {
		return fmt.Errorf("it ended (%s) with %v, alone it gives %v", l.Reason, l.FinalRoot(), want)
	}
	return b.fetch(ctx, at, o.ID())
}

func (b *buyers) fetch(ctx context.Context, at *desk.Desk, order canon.Hash) error {
	out := filepath.Join(b.t.TempDir(), order.Short())
	got, err := at.Deliver(ctx, desk.DeliveryRequest{Order: order, Dir: out})
	if err != nil {
		return err
	}
	for _, file := range []string{got.Model.ONNX, got.Model.Bundle} {
		if _, err := os.Stat(file); err != nil {
			return err
		}
	}
	return nil
}

// Several commands post the very same order at once. It is posted once, all of them have it, and its files
// stay: one that is refused while no block has the order yet must not let go of them.
func TestTheSameOrderAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	n, err := devnet.Start(t.Context(), devnet.Config{
		Dir: t.TempDir(), Validators: 2, Providers: 2, LeaveConsumer: true,
		CommitTimeout: 500 * time.Millisecond, EmptyInterval: 500 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	}()
	if err := n.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := buyers{t: t, dir: filepath.Join(n.Dir(), "consumer")}
	at, err := b.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	d, err := nettest.NewDraft(t.Context(), func(s *consume.Spec) { s.Problem.Rounds = 1 })
	if err != nil {
		t.Fatal(err)
	}
	as, err := at.Buyer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o, err := d.Order(as)
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for i := range 4 {
		wait.Go(func() {
			if err := at.Post(t.Context(), &o, d.Body); err != nil {
				t.Errorf("command %d: %v", i, err)
			}
		})
	}
	wait.Wait()
	p, err := consume.Follow(t.Context(), n.Validators[0].Env, o.ID(), func(consume.Progress) bool { return false })
	if err != nil || p.Lease.Reason != "" {
		t.Errorf("it ended: %s, %v", p.Lease.Reason, err)
	}
}
