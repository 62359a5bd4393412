// Package life fills a devnet with people, and counts whether everything adds up while they live. Buyers order training
// and batches, one order after the other. Guests come to earn; they go, some by a power cut, some with their stake.
// Of several buyers the first is the partner of a project of drilling, which the founders of the network vote in.
//
// Call [Run] with a network that has started.
//
// Invariants: one seed gives the same intentions; what comes of them depends on the machine. Whatever happens, all
// tokens are accounted for, the power of all is what each has, and a result is that of an honest run.
package life

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/home"
)

// Options say how many people live on a network, and for how long.
type Options struct {
	Seed   uint64
	For    time.Duration      // after which nobody begins anything; 0: until ctx is done
	Buyers int                // each of whom has one order at a time
	Guests int                // who are there at once
	Tell   func(Report) error // hears of the state now and then; an error ends it
}

// Bounds on people, all of whom share a machine.
const (
	MaxBuyers = 64
	MaxGuests = 32
)

// Intervals of a life.
const (
	telling  = 10 * time.Second
	checking = 3 * time.Second // between two counts
)

const (
	tally = 1_000_000       // utally
	purse = 100_000 * tally // what a buyer has at first
	alms  = purse / 10      // below which it gets as much again
)

type life struct {
	o     Options
	net   *devnet.Network
	ctx   context.Context // of people; over at once
	begun time.Time

	mu     sync.Mutex
	report Report
	stop   context.CancelCauseFunc
}

// Run lets people live on a network until the time is over or ctx is done, and then waits for the orders under
// way. It returns what came of all, and an error if something did not add up.
func Run(ctx context.Context, n *devnet.Network, o Options) (Report, error) {
	if o.Buyers < 1 || o.Buyers > MaxBuyers || o.Guests < 0 || o.Guests > MaxGuests {
		return Report{}, fmt.Errorf("%d buyers and %d guests: want 1 to %d, and at most %d", o.Buyers, o.Guests, MaxBuyers, MaxGuests)
	}
	l := &life{o: o, net: n, begun: time.Now(), report: newReport()}
	l.ctx, l.stop = context.WithCancelCause(ctx)
	defer l.stop(nil)
	err := l.live()
	if cause := context.Cause(l.ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	} else if ctx.Err() != nil {
		err = nil // somebody has had enough
	}
	return l.now(), err
}

// live is a whole life: people come, live side by side, and end what they have begun.
func (l *life) live() (err error) {
	if err := l.net.Ready(l.ctx); err != nil {
		return err
	}
	buyers, err := l.settle()
	defer func() {
		for _, b := range buyers {
			err = errors.Join(err, b.Leave())
		}
	}()
	if err != nil {
		return err
	}
	day, over := context.WithCancel(l.ctx) // nothing is begun after it
	if l.o.For > 0 {
		day, over = context.WithTimeout(l.ctx, l.o.For)
	}
	defer over()
	var people, guests, watch sync.WaitGroup
	night, dawn := context.WithCancel(l.ctx)
	defer dawn()
	watch.Go(func() { l.fail(l.keepCounting(night)) })
	watch.Go(func() { l.fail(l.keepTelling(night)) })
	for i, b := range buyers {
		watch.Go(func() { _ = consume.Serve(night, b.Env) })
		people.Go(func() {
			if i == 0 && len(buyers) > 1 {
				l.fail(b.drill())
			}
			l.fail(b.live(day, l.chance(1, i)))
		})
	}
	for i := range l.o.Guests {
		guests.Go(func() { l.fail(l.visits(day, night, i, buyers[0], l.chance(2, i))) })
	}
	people.Wait()
	dawn()
	guests.Wait()
	watch.Wait()
	if l.ctx.Err() != nil {
		return nil
	}
	return l.count(l.ctx)
}

// chance returns the random numbers of one of the people.
func (l *life) chance(kind, i int) *rand.Rand {
	return rand.New(rand.NewPCG(l.o.Seed, uint64(kind)<<32|uint64(i)))
}

// fail ends the life of all, unless nothing has failed.
func (l *life) fail(err error) {
	if err != nil && l.ctx.Err() == nil {
		l.stop(err)
	}
}

// settle opens the homes of the buyers, and gives them of the consumer's money. That home is free again after it.
func (l *life) settle() (out []*buyer, err error) {
	for i := range l.o.Buyers {
		m, err := l.net.Enter(l.ctx, home.Settings{Role: home.Consumer, Name: fmt.Sprintf("buyer-%d", i)})
		if err != nil {
			return out, err
		}
		out = append(out, &buyer{life: l, Member: m})
	}
	return out, l.endow(out)
}

func (l *life) endow(buyers []*buyer) (err error) {
	h, err := home.Open(l.net.Consumer.Home.Dir)
	if err != nil {
		return fmt.Errorf("the consumer, who gives people money: %w", err)
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	env, err := h.Env(l.ctx, home.Options{})
	if err != nil {
		return err
	}
	var gifts []sdk.Msg
	for _, b := range buyers {
		have, err := balance(l.ctx, b.Env.Chain, b.Home.Address)
		if err != nil {
			return err
		}
		if have < alms {
			gifts = append(gifts, gift(h.Address, b.Home.Address, purse))
		}
	}
	if len(gifts) == 0 {
		return nil
	}
	_, err = env.Account.Send(l.ctx, gifts...)
	return err
}

func gift(from, to string, utally uint64) sdk.Msg {
	return &banktypes.MsgSend{FromAddress: from, ToAddress: to, Amount: coin.Of(utally)}
}

func balance(ctx context.Context, c *client.Client, account string) (uint64, error) {
	r, err := banktypes.NewQueryClient(c.Conn).Balance(ctx, &banktypes.QueryBalanceRequest{Address: account, Denom: coin.Denom})
	if err != nil {
		return 0, err
	}
	return r.Balance.Amount.Uint64(), nil
}

// wait waits, unless the day is over before; it reports which.
func wait(day context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-day.Done():
		return false
	}
}

// keepTelling tells of the state now and then.
func (l *life) keepTelling(ctx context.Context) error {
	for wait(ctx, telling) {
		if l.o.Tell == nil {
			continue
		}
		if err := l.o.Tell(l.now()); err != nil {
			return err
		}
	}
	return nil
}
