package town

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"time"

	"github.com/tally-network/tally/bench/solo"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
	blockv1 "github.com/tally-network/tally/gen/tally/block/v1"
)

// crowd is how many consumers open sessions at once, each in a transaction of its own.
const crowd = 64

func guest(i int) person { return personOf(fmt.Sprint("town guest ", i)) }

// Sessions lets guests open n sessions with the provider, which settles each at what both have signed. It returns what the node spends
// on them.
func (t *Town) Sessions(ctx context.Context, n int) (Spent, error) {
	t.spent = Spent{}
	for begun := 0; begun < n; begun += crowd {
		var now blockv1.QueryNowResponse
		if err := t.Ask("/tally.block.v1.Query/Now", &blockv1.QueryNowRequest{}, &now); err != nil {
			return Spent{}, err
		}
		var opens, ends []duty
		for i := range min(crowd, n-begun) {
			open, end := t.session(i, now.TimeMs)
			opens, ends = append(opens, open), append(ends, end)
		}
		if err := t.perform(ctx, opens); err != nil {
			return Spent{}, err
		}
		if err := t.perform(ctx, ends); err != nil {
			return Spent{}, err
		}
	}
	return t.spent, nil
}

// session returns what opens a session of a guest, and what settles it.
func (t *Town) session(i int, now int64) (open, end duty) {
	consumer, provider := guest(i), personOf("town provider")
	party := func(p person) session.Party {
		return session.Party{Account: p.address(), Key: p.peer.Public().(ed25519.PublicKey)}
	}
	t.posted++
	terms := session.Terms{
		Chain: solo.ID, Consumer: party(consumer), Provider: party(provider), Model: canon.Sum(canon.Domain("bench/town"), []byte("model")),
		Prices: session.Prices{Prompt: 100_000, Reply: 400_000}, Credit: session.Credit{First: 1_000, Cap: 100_000},
		Escrow: 1_000_000, OpenBy: now + time.Hour.Milliseconds(), End: now + 2*time.Hour.Milliseconds(), Nonce: t.posted,
	}
	final := session.Final{Session: terms.ID(), Amount: 500_000}
	sign := func(p person, id canon.Hash) []byte { return ed25519.Sign(p.peer, id[:]) }
	return duty{consumer.address(), wire.OpenSession(&terms, sign(provider, terms.ID()))},
		duty{provider.address(), wire.FinishSession(provider.address(), &final, sign(consumer, final.ID()))}
}
