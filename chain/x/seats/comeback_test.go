package seats_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/core/power"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// thirty is a chain on which alice has 30 of 100 parts of the power, and seven members the rest, whose bonds stand behind slack
// hundredths of their seats.
func thirty(t *testing.T, slack uint64) (c *chaintest.Chain, alice chaintest.Account, part func() float64) {
	const n = 7
	alice = chaintest.Named("alice")
	c = chaintest.New(t, network(crowd(n, 1_000*slack/100), func(g *app.Genesis) { g.Policy.Base, g.Policy.Quorum = 600_000, 600_000 })...)
	err := c.Do(func(ctx sdk.Context) error {
		for i := range n {
			if err := c.Power.Credit(ctx, chaintest.Named(fmt.Sprint("m", i)).Address, 10*power.UT); err != nil {
				return err
			}
		}
		return c.Power.Credit(ctx, alice.Address, 30*power.UT)
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Deliver(alice, join(alice, 40_000*tally))
	pass(t, c, 14)
	return c, alice, func() float64 {
		s := status(t, c).Set.Seats
		return float64(votes(s, alice)) / float64(total(s))
	}
}

// drawn passes blocks until the draw of the epoch is over.
func drawn(t *testing.T, c *chaintest.Chain) {
	t.Helper()
	for status(t, c).Draw != nil || status(t, c).LastDrawEpoch != status(t, c).Epoch {
		busy(c)
	}
}

// Power that steps aside for one draw made what bonds stand for small in the next, so that others counted for less and it for more
// than it is.
func TestWhoStepsAsideGainsNothing(t *testing.T) {
	for name, aside := range map[string]func(c *chaintest.Chain, a chaintest.Account){
		"leave and join": func(c *chaintest.Chain, a chaintest.Account) {
			c.Deliver(a, &seatsv1.MsgLeave{Account: a.String()})
			c.Deliver(a, join(a, 40_000*tally))
		},
		"undelegate": func(c *chaintest.Chain, a chaintest.Account) {
			c.Deliver(a, &seatsv1.MsgDelegate{Account: a.String()})
		},
	} {
		for _, slack := range []uint64{100, 105} {
			c, alice, part := thirty(t, slack)
			most := part()
			drawn(t, c)
			aside(c, alice)
			for range 3 * epoch {
				busy(c)
				most = max(most, part())
			}
			if name == "undelegate" {
				c.Deliver(alice, &seatsv1.MsgDelegate{Account: alice.String(), Member: alice.String()})
			}
			for range 5 * epoch {
				busy(c)
				most = max(most, part())
			}
			if most > 0.31 {
				t.Errorf("%s, bonds of %d %%: %.3f of the votes by 0.30 of the power", name, slack, most)
			}
		}
	}
}

// Whoever has come back counts in no draw yet, and keeps no votes meanwhile, even where a draw lacks seats.
func TestWhoComesBackWaits(t *testing.T) {
	c, alice, part := thirty(t, 100)
	for i := range 2 {
		drawn(t, c)
		was := status(t, c).Epoch
		c.Deliver(alice, &seatsv1.MsgLeave{Account: alice.String()})
		c.Deliver(alice, join(alice, []uint64{40_000, 10}[i]*tally))
		if i == 1 {
			c.Deliver(alice, &seatsv1.MsgDelegate{Account: alice.String()})
		}
		for status(t, c).Epoch < was+2 || status(t, c).LastDrawEpoch < was+2 || status(t, c).Draw != nil {
			busy(c)
		}
	}
	pass(t, c, 40)
	if got := part(); got > 0.1 { // two draws have taken a quarter of all votes each
		t.Errorf("%.3f of the votes by no power, and the bond of a seat", got)
	}
}

// An absent member that unjails itself before its draw decides keeps no votes either.
func TestUnjailingKeepsNoVotes(t *testing.T) {
	c := chaintest.New(t, network(func(g *app.Genesis) {
		g.Epoch = long
		for i := range g.Validators {
			g.Validators[i].Bond = 14_000 * tally // of 7,000 seats of 10,000
		}
	})...)
	f4 := chaintest.Named("f4")
	for range 6 * long {
		signed(t, c, cmtproto.BlockIDFlagAbsent, "f4")
		switch m := member(t, c, f4).Member; {
		case m.Votes == 0:
			return
		case m.Status == seatsv1.STATUS_JAILED:
			c.Deliver(f4, &seatsv1.MsgUnjail{Account: f4.String()})
		default:
			busy(c)
		}
	}
	t.Error("absent for six epochs, and has its votes")
}

// A bond that comes while a draw goes on counts in none of that draw, even if the draw ends in the next epoch, in which there
// is another.
func TestBondsOfADrawAcrossEpochs(t *testing.T) {
	c := chaintest.New(t, network(crowd(200, 1), func(g *app.Genesis) { g.Epoch = 24 })...)
	last := chaintest.Named("alice") // of these names the last to be gone through
	for _, name := range []string{"bob", "carol"} {
		if a := chaintest.Named(name); bytes.Compare(a.Address, last.Address) > 0 {
			last = a
		}
	}
	credit(t, c, last, 20)
	c.Deliver(last, join(last, 10*tally))
	for status(t, c).Epoch < 4 || status(t, c).Draw != nil {
		busy(c)
	}
	for e := status(t, c).Epoch; status(t, c).Epoch == e; {
		c.NextBlock(time.Second)
	}
	for range 21 {
		c.NextBlock(time.Second)
	}
	was := status(t, c).Epoch
	busy(c)
	c.Deliver(last, &seatsv1.MsgBond{Account: last.String(), Amount: 100_000 * tally})
	if d := status(t, c).Draw; d == nil || d.Epoch != was || status(t, c).Epoch != was {
		t.Fatalf("draw %v in epoch %d", d, was)
	}
	told := 0
	for range 8 {
		b := busy(c)
		if status(t, c).Epoch > was {
			b = c.Deliver(last, &seatsv1.MsgBond{Account: last.String(), Amount: 1})
		}
		for _, e := range chaintest.Events[*seatsv1.EventSeated](t, b) {
			if told++; e.Epoch == was && votes(e.Seats, last) > 1 {
				t.Errorf("%d of %d votes by a bond that came while the draw went on", votes(e.Seats, last), total(e.Seats))
			}
		}
	}
	if told == 0 {
		t.Error("no draw came to its end")
	}
}

// Votes of a small genesis set are few in number, and many seats in part. They are remembered once the set has another scale.
func TestVotesOfAnotherScaleAreRemembered(t *testing.T) {
	c, f1 := chaintest.New(t, network()...), chaintest.Named("f1")
	start := c.Balance(f1.Address)
	c.Deliver(f1, &seatsv1.MsgUnbond{Account: f1.String(), Amount: 99_990 * tally})
	c.NextBlock(22 * 24 * time.Hour)
	for range 3 * epoch {
		busy(c)
	}
	c.NextBlock(time.Hour)
	busy(c)
	if got := c.Balance(f1.Address); got != start {
		t.Errorf("%d utally are back an hour after it had a fifth of the votes", got-start)
	}
	c.NextBlock(48 * time.Hour)
	busy(c)
	c.NextBlock(time.Hour)
	busy(c)
	if got := c.Balance(f1.Address) - start; got != 99_990*tally {
		t.Errorf("%d utally are back once no evidence counts any more", got)
	}
}

// A slash adds a part that waits to come back, and the next one reaches that too.
func TestTheSecondSlashReachesTheRest(t *testing.T) {
	c, alice := chaintest.New(t, network()...), chaintest.Named("alice")
	credit(t, c, alice, 40)
	c.Deliver(alice, join(alice, 100_000*tally))
	for range 99 {
		c.Deliver(alice, &seatsv1.MsgUnbond{Account: alice.String(), Amount: 1})
	}
	pass(t, c, 5)
	for status(t, c).Draw != nil {
		busy(c)
	}
	key := consensus(t, c, alice)
	for _, want := range []uint64{50_000 * tally, 25_000 * tally} {
		accuse(c, abci.MisbehaviorType_DUPLICATE_VOTE, key)
		told := chaintest.Events[*seatsv1.EventEquivocation](t, busy(c))
		if len(told) != 1 || told[0].Slashed < want-200 {
			t.Errorf("slashed %v, want %d", told, want)
		}
		pass(t, c, 1)
	}
}

// A founder without a bond is forgotten once the last block that it was to sign has been told of. Before, that block's absence
// abandoned the draw.
func TestForgottenOnceAllIsTold(t *testing.T) {
	c := chaintest.New(t, network(paying, func(g *app.Genesis) {
		g.Epoch = 12
		g.Policy.Base, g.Policy.Quorum = base*1_000_000, base*300_000
		g.Validators[4].Bond = 0
	})...)
	f4 := chaintest.Named("f4")
	key := consensus(t, c, f4)
	for status(t, c).Epoch < 3 {
		c.NextBlock(time.Second)
	}
	for range 9 {
		c.NextBlock(time.Second)
	}
	c.Deliver(f4, &seatsv1.MsgLeave{Account: f4.String()}) // the draw begins, in the last block but one of the epoch
	for i := range 5 {
		if c.Signed = nil; i == 2 { // this block tells of the one before, in which it still was a validator
			c.Signed = []abci.VoteInfo{{Validator: abci.Validator{Address: key, Power: 1}, BlockIdFlag: cmtproto.BlockIDFlagAbsent}}
		}
		for _, e := range abandoned(t, busy(c)) {
			t.Errorf("block %d: %v", i, e)
		}
	}
	pass(t, c, 2)
	if _, err := c.Seats.Get(c.Ctx(), f4.Address); err == nil {
		t.Error("it has left, and is still there")
	}
}

// Power that comes at once is in names just above those whose bonds seem too small: all are weighed again, not the best alone.
func TestWhoComesAtOnceDoesNotCrowdOut(t *testing.T) {
	const honest, theirs = 100, 61
	c := chaintest.New(t, network(crowd(honest, 70), func(g *app.Genesis) {
		crowd(honest+theirs, 90)(g)
		n := len(g.Validators)
		g.Validators = append(g.Validators[:n-honest-theirs:n-honest-theirs], g.Validators[n-theirs:]...)
		g.Policy.Base, g.Policy.Quorum, g.Epoch = 600_000, 600_000, 24
	})...)
	give := func(from, to int, hundredths uint64) {
		err := c.Do(func(ctx sdk.Context) error {
			for i := from; i < to; i++ {
				if err := c.Power.Credit(ctx, chaintest.Named(fmt.Sprint("m", i)).Address, hundredths*(power.UT/100)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	give(0, honest, 700)
	for status(t, c).Epoch < 5 {
		busy(c)
	}
	give(honest, honest+theirs, 492) // 0.30 of all
	most := 0.0
	for status(t, c).Epoch < 11 {
		for _, e := range chaintest.Events[*seatsv1.EventSeated](t, busy(c)) {
			part := uint64(0)
			for i := honest; i < honest+theirs; i++ {
				part += votes(e.Seats, chaintest.Named(fmt.Sprint("m", i)))
			}
			most = max(most, float64(part)/float64(total(e.Seats)))
		}
	}
	if most > 1.0/3 {
		t.Errorf("%.3f of the votes by 0.30 of the power", most)
	}
}

// Where a draw lacks seats and somebody has left a genesis set, votes are still parts of all: a bond of one seat stands for none of
// a quarter of them.
func TestWhoStaysIsComparedByParts(t *testing.T) {
	c := chaintest.New(t, network(func(g *app.Genesis) {
		for i := range g.Validators {
			g.Validators[i].Bond = 10_000 * tally
		}
		g.Validators[1].Bond = 25_000 * tally
	})...)
	f1, f4 := chaintest.Named("f1"), chaintest.Named("f4")
	c.Deliver(f4, &seatsv1.MsgLeave{Account: f4.String()})
	pass(t, c, 3)
	start := c.Balance(f1.Address)
	c.Deliver(f1, &seatsv1.MsgUnbond{Account: f1.String(), Amount: 24_990 * tally})
	pass(t, c, 1)
	c.NextBlock(22 * 24 * time.Hour)
	busy(c)
	if got := c.Balance(f1.Address) - start; got > 0 {
		t.Errorf("%d utally are back, and it has %d of %d votes", got, votes(status(t, c).Set.Seats, f1), total(status(t, c).Set.Seats))
	}
}

// Who adds to its bond in every epoch has seats by all but the last of it.
func TestBondsThatGrowCount(t *testing.T) {
	c, alice := chaintest.New(t, network()...), chaintest.Named("alice")
	credit(t, c, alice, 40)
	c.Deliver(alice, join(alice, 10*tally))
	pass(t, c, 4)
	c.Deliver(alice, &seatsv1.MsgBond{Account: alice.String(), Amount: 1_000 * tally})
	for range 8 {
		e := status(t, c).Epoch
		c.Deliver(alice, &seatsv1.MsgBond{Account: alice.String(), Amount: 1})
		for status(t, c).Epoch == e {
			busy(c)
		}
	}
	if v := member(t, c, alice).Member.Votes; v < 100 {
		t.Errorf("%d votes by a bond for 101 seats", v)
	}
}
