package byzantine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	abci "github.com/cometbft/cometbft/abci/types"
	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	"github.com/cometbft/cometbft/crypto/encoding"

	sdk "github.com/cosmos/cosmos-sdk/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/power"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// recorder notes what fails, and fails nothing.
type recorder struct {
	testing.TB
	seen []string
}

// halt is what a recorder's Fatalf panics with.
type halt struct{}

func (r *recorder) Errorf(format string, args ...any) {
	r.seen = append(r.seen, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(halt{})
}

func (r *recorder) Fatal(args ...any) { r.Fatalf("%s", fmt.Sprint(args...)) }

// of notes what fails while f runs.
func (r *recorder) of(f func()) {
	r.seen = nil
	defer func() {
		if p := recover(); p != nil && p != any(halt{}) {
			panic(p)
		}
	}()
	f()
}

// Each check can fail: what must never be is done to a network, and seen.
func TestChecksSeeFaults(t *testing.T) {
	r := &recorder{TB: t}
	s := Small
	s.Crowd, s.Honest, s.Epochs = 40, 8, 6
	w := Begin(r, s)
	w.Play()
	if len(r.seen) > 0 {
		t.Fatalf("before any fault: %q", r.seen)
	}
	h, c, p := w.honest[1], w.crowd[2], w.teams[0].members[0]
	do := func(f func(sdk.Context) error) {
		if err := w.Do(f); err != nil {
			t.Fatal(err)
		}
	}
	for _, fault := range []struct {
		name, want string
		make       func()
	}{
		{"nothing", "", w.judge.check},
		{"money of a member goes", h.Name + ", who is honest, has ", func() {
			do(func(ctx sdk.Context) error { return w.Bank.SendCoins(ctx, h.Address, p.Address, coin.Of(2*tally)) })
			w.judge.check()
		}},
		{"money of a provider goes", c.Name + ", who is honest, has ", func() {
			do(func(ctx sdk.Context) error { return w.Bank.SendCoins(ctx, c.Address, p.Address, coin.Of(1)) })
			w.judge.check()
		}},
		{"a bond goes", "invariant", func() {
			do(func(ctx sdk.Context) error {
				return w.Bank.SendCoinsFromModuleToAccount(ctx, "seats", p.Address, coin.Of(1))
			})
			r.of(w.judge.check)
			was := r.seen
			do(func(ctx sdk.Context) error {
				return w.Bank.SendCoinsFromAccountToModule(ctx, p.Address, "seats", coin.Of(1))
			})
			r.seen = was
		}},
		{"power that nobody worked for", c.Name + " has a power of ", func() {
			do(func(ctx sdk.Context) error { return w.Power.Credit(ctx, c.Address, power.UT) })
			w.judge.check()
		}},
		{"power goes", h.Name + " has a power of 0", func() {
			do(func(ctx sdk.Context) error { return w.Power.Forfeit(ctx, h.Address) })
			w.judge.check()
		}},
		{"a set of the adversary's", "more than a quarter of the votes moves", func() {
			w.step(func(name string, votes uint64) uint64 {
				if w.byName[name].team == nil {
					return votes / 4
				}
				return votes
			})
		}},
		{"one member's votes are fewer", h.Name + ", who is honest, has ", func() {
			w.step(func(name string, votes uint64) uint64 {
				if name == h.String() {
					return votes * 4 / 5
				}
				return votes
			})
		}},
		{"an honest member is convicted", "has not signed twice", func() { w.convict(w.honest[4]) }},
		{"an honest member loses its power", "has lost its power", func() { w.convict(w.honest[5]) }},
		{"forged evidence is taken", "who is honest, is taken", func() {
			w.testify(w.teams[0], w.honest[2], ballot(w.honest[2].Peer, consensus(w.honest[2].Peer), w.Height(), "a"), ballot(w.honest[2].Peer, consensus(w.honest[2].Peer), w.Height(), "b"))
			w.comet.told = nil
		}},
		{"what must be refused is taken", "taken, and must be refused", func() {
			w.send(nil, p, never, banktypes.NewMsgSend(p.Address, p.Address, coin.Of(1)))
			w.block()
		}},
		{"what must be taken is refused", "refused, and must be taken", func() {
			w.send(nil, p, always, &seatsv1.MsgUnbond{Account: p.String(), Amount: purse * 2})
			w.block()
		}},
		{"a set that CometBFT refuses", "CometBFT would stop", func() {
			key, err := encoding.PubKeyToProto(cmted25519.PubKey(chaintest.Named("nobody").PeerKey()))
			if err != nil {
				t.Fatal(err)
			}
			w.comet.After(chaintest.Block{Height: w.Height(), ResponseFinalizeBlock: &abci.ResponseFinalizeBlock{ValidatorUpdates: []abci.ValidatorUpdate{{PubKey: key}}}})
		}},
		{"an order takes from an honest validator", "v0, who is honest, has ", func() {
			v := chaintest.Named("v0").Address
			do(func(ctx sdk.Context) error { return w.Bank.SendCoins(ctx, p.Address, v, coin.Of(tally)) }) // it has something to lose
			w.order(orderAttack{"steal", func(w *World, o job.Order) *worktest.Play {
				do(func(ctx sdk.Context) error { return w.Bank.SendCoins(ctx, v, p.Address, coin.Of(tally/2)) })
				return wash(w, o)
			}})
		}},
		{"some earn nothing", c.Name + ", who is honest, has earned ", func() {
			c.counted = w.wealth(c)
			w.judge.checkAll()
		}},
		{"the adversary earns", "has gained", func() {
			do(func(ctx sdk.Context) error {
				return w.Bank.SendCoins(ctx, w.honest[3].Address, p.Address, coin.Of(purse/2))
			})
			w.judge.checkAll()
		}},
	} {
		r.of(fault.make)
		found := slices.ContainsFunc(r.seen, func(x string) bool { return strings.Contains(x, fault.want) })
		if fault.want == "" && len(r.seen) > 0 || fault.want != "" && !found {
			t.Errorf("%s: seen is %q, want %q", fault.name, r.seen, fault.want)
		}
	}
}

// convict has the next block tell that somebody has signed twice.
func (w *World) convict(p *person) {
	w.comet.told = append(w.comet.told, abci.Misbehavior{
		Type: abci.MisbehaviorType_DUPLICATE_VOTE, Height: w.Height(), Time: w.Now(), Validator: abci.Validator{Address: consensus(p.Peer), Power: 1},
	})
	w.block()
}

// step has the checks see a step from the newest set to one with other votes.
func (w *World) step(change func(name string, votes uint64) uint64) {
	e := &seatsv1.EventSeated{Epoch: w.epoch() + 1}
	for _, s := range w.last {
		e.Seats = append(e.Seats, seatsv1.Seat{Member: s.Member, Votes: change(s.Member, s.Votes)})
	}
	was := w.last
	w.judge.stepped(e)
	w.last = was
}
