package life

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/partner"
)

// buyer posts orders, one after the other.
type buyer struct {
	*life
	*devnet.Member
	project uint64 // of drilling, whose partner it is and whose tasks its orders are; 0: they are of all other kinds
}

// budget of the project, in ut: more than a devnet comes to.
const budget = 1_000_000_000

// drill makes the buyer the partner of a project, which the founders of the network vote in.
func (b *buyer) drill() (err error) {
	var founders []*client.Account
	for _, v := range b.net.Validators {
		founders = append(founders, v.Env.Account)
	}
	b.project, err = partner.Found(b.ctx, b.Env.Chain, b.Env.Account, founders, partner.Project{
		Name: "life", Summary: "How well texts are foreseen.", Contact: "https://example.org", Budget: budget,
	})
	return err
}

// live buys until the day is over, once at least, and brings the last order to its end.
func (b *buyer) live(day context.Context, r *rand.Rand) error {
	begin := r.Uint64() >> 16
	for number := begin; number == begin || day.Err() == nil; number++ {
		k := &drilling
		if b.project == 0 {
			k = drawn(r)
		}
		if err := b.buy(k, number, r); err != nil && b.ctx.Err() == nil {
			return fmt.Errorf("%s, an order of %s: %w", b.Env.Name, k.name, err)
		}
		wait(day, time.Duration(r.IntN(4_000))*time.Millisecond)
	}
	return nil
}

// patience is how long an order may take. One that nobody meets expires before.
const patience = 15 * time.Minute

// buy brings an order from draft to its end, compares what it gave with an honest run, and counts it.
func (b *buyer) buy(k *kind, number uint64, r *rand.Rand) error {
	d, err := k.draft(b.ctx, number, r, b.project, b.Env.Jobs.Exec)
	if err != nil {
		return err
	}
	o, err := d.Order(consume.BuyerOf(b.Env))
	if err == nil {
		err = consume.Keep(b.Env, &o, d.Body())
	}
	if err != nil {
		return err
	}
	id, err := consume.Post(b.ctx, b.Env, &o)
	if err != nil {
		return err
	}
	b.note(func(t *Report) { t.of(k.name).Posted++ })
	if k.leaves > 0 {
		wait(b.ctx, k.leaves)
		if _, err := b.Env.Account.Send(b.ctx, &marketv1.MsgCancelOrder{Consumer: b.Home.Address, Order: id.String()}); err != nil {
			return fmt.Errorf("cancel: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	p, err := consume.Follow(ctx, b.Env, id, func(consume.Progress) bool { return false })
	switch {
	case errors.Is(err, consume.ErrUnmet):
		b.note(func(t *Report) { t.of(k.name).Refunded++ })
		return b.Env.Forget(id)
	case err != nil || p.Lease == nil || !p.Ended():
		return errors.Join(err, fmt.Errorf("order %s has not ended after %v: %v", id.Short(), patience, &p))
	case p.Lease.Reason != "":
		b.note(func(t *Report) { t.of(k.name).Stopped++; t.Reasons[p.Lease.Reason]++ })
		return b.Env.Forget(id)
	}
	want, err := d.Honest(b.ctx)
	if err != nil {
		return err
	}
	if got := p.Lease.FinalRoot(); got != want {
		return fmt.Errorf("order %s gave %v, and an honest run gives %v", id.Short(), got, want)
	}
	b.note(func(t *Report) { t.of(k.name).Settled++ })
	return b.Env.Forget(id)
}
