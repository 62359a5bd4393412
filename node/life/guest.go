package life

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"path/filepath"
	"time"

	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/home"
	"github.com/tally-network/tally/node/runner"
)

const (
	bond  = 500 * tally // of a guest
	small = 20 * tally  // for the fees of one
)

// visits lets guests come to one place, one after the other, until the day is over. Who is there then stays for
// the night, in which the last orders end. The patron gives them money.
func (l *life) visits(day, night context.Context, place int, patron *buyer, r *rand.Rand) error {
	for n := l.former(place); day.Err() == nil; n++ {
		name := fmt.Sprintf("guest-%d-%d", place, n)
		if err := l.visit(day, night, name, patron, r); err != nil && l.ctx.Err() == nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		wait(day, seconds(r, 2, 10))
	}
	return nil
}

// former returns how many guests have been at a place before.
func (l *life) former(place int) int {
	found, _ := filepath.Glob(filepath.Join(l.net.Dir(), fmt.Sprintf("guest-%d-*", place)))
	return len(found)
}

// visit is the life of a guest: it comes, is away now and then without a word, and leaves with its stake.
func (l *life) visit(day, night context.Context, name string, patron *buyer, r *rand.Rand) error {
	l.note(func(t *Report) { t.Guests.Came++ })
	price := 800 + r.Uint64N(500)
	prices := home.ProviderSettings{
		UnitPrice: price, BytePrice: 100, Validator: l.net.Validators[0].Home.Address, Sell: []string{fmt.Sprintf("C:100@%d", price)},
	}
	for first := true; ; first = false {
		m, err := l.net.Enter(l.ctx, home.Settings{Role: home.Provider, Name: name, Stake: bond, Provider: &prices})
		if err != nil {
			return err
		}
		if first {
			if _, err := patron.Env.Account.Send(l.ctx, gift(patron.Home.Address, m.Home.Address, bond+small)); err != nil {
				return errors.Join(err, m.Leave())
			}
		}
		goesOn := wait(day, seconds(r, 20, 90))
		if stays := r.IntN(5) < 3; goesOn && stays {
			l.note(func(t *Report) { t.Guests.Cuts++ })
			if err := m.Leave(); err != nil {
				return err
			}
			wait(day, seconds(r, 3, 20))
			continue
		}
		switch {
		case !goesOn:
			<-night.Done()
		case withdraw(l.ctx, m):
			l.note(func(t *Report) { t.Guests.Left++ })
		default:
			l.note(func(t *Report) { t.Guests.Cuts++ })
		}
		return m.Leave()
	}
}

// withdraw takes what of a guest's stake bonds nothing, and reports whether it could: what the guest
// computes may bond more of it at any moment.
func withdraw(ctx context.Context, m *devnet.Member) bool {
	for range 5 {
		p, err := runner.Registered(ctx, m.Env)
		if err == nil && p != nil && p.Stake > p.Reserved {
			if _, err = m.Env.Account.Send(ctx, &providerv1.MsgWithdraw{Account: p.Account, Amount: p.Stake - p.Reserved}); err == nil {
				return true
			}
		}
		if !wait(ctx, time.Second) {
			break
		}
	}
	return false
}

// seconds returns a time of least to most seconds.
func seconds(r *rand.Rand, least, most int) time.Duration {
	return time.Duration(least*1000+r.IntN((most-least)*1000)) * time.Millisecond
}
