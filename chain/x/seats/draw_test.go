package seats_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	dbm "github.com/cosmos/cosmos-db"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/vrf"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/seats"
	"github.com/tally-network/tally/core/power"
	"github.com/tally-network/tally/core/sortition"
	beaconv1 "github.com/tally-network/tally/gen/tally/beacon/v1"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// rules changes how a network gives seats.
func rules(change func(*seatsv1.Params)) chaintest.Option {
	return func(g *app.Genesis) {
		g.Seats.Params = seats.DefaultParams()
		change(&g.Seats.Params)
	}
}

// proving makes members prove, in epochs that have time for it. All founders have keys.
func proving(g *app.Genesis) {
	rules(func(p *seatsv1.Params) { p.Allocation = seats.Proofs })(g)
	g.Epoch = long
	for _, n := range founders[1:] {
		g.Keys = append(g.Keys, beaconv1.Key{Account: chaintest.Named(n).String(), Key: chaintest.Named(n).VRFKey()})
	}
}

// crowd adds members without votes, with bonds for so many seats.
func crowd(n int, seats uint64) chaintest.Option {
	return func(g *app.Genesis) {
		for i := range n {
			v := chaintest.Named(fmt.Sprint("m", i))
			g.Validators = append(g.Validators, app.Validator{Account: v.String(), ConsensusKey: v.PeerKey(), Bond: seats * 10 * tally})
		}
	}
}

// proof returns what a member shows for a draw, by a key.
func proof(t *testing.T, who chaintest.Account, by chaintest.Account, value []byte, epoch uint64) *seatsv1.MsgProve {
	t.Helper()
	_, pi, err := vrf.Prove(by.VRF, wire.SeatInput(value, epoch))
	if err != nil {
		t.Fatal(err)
	}
	return &seatsv1.MsgProve{Account: who.String(), Epoch: epoch, Proof: pi}
}

func abandoned(t *testing.T, b chaintest.Block) []*seatsv1.EventDrawAbandoned {
	t.Helper()
	return chaintest.Events[*seatsv1.EventDrawAbandoned](t, b)
}

// Where members prove, who does not has no seats. A proof is for one draw, of one member and one key, until it opens.
func TestWhoProvesIsDrawn(t *testing.T) {
	const length = 40
	c := chaintest.New(t, network(proving, func(g *app.Genesis) { g.Epoch = length })...)
	f := func(i int) chaintest.Account { return chaintest.Named(founders[i]) }
	reach(t, c, 1)
	value := status(t, c).Draw.Value
	alice := chaintest.Named("alice")
	for name, m := range map[string]*seatsv1.MsgProve{
		"of another epoch":  proof(t, f(1), f(1), value, 2),
		"by another key":    proof(t, f(1), f(2), value, 1),
		"of another value":  proof(t, f(1), f(1), value[1:], 1),
		"of another member": {Account: f(1).String(), Epoch: 1, Proof: proof(t, f(2), f(2), value, 1).Proof},
		"of nothing":        {Account: f(1).String(), Epoch: 1},
	} {
		t.Log(name, c.Refuse(seats.ErrDraw, f(1), m))
	}
	c.Refuse(seats.ErrMember, alice, proof(t, alice, alice, value, 1))
	has := func(who chaintest.Account) bool { return c.Seats.HasToProve(c.Ctx(), who.String(), 1) }
	if !has(f(3)) || has(alice) || c.Seats.HasToProve(c.Ctx(), f(3).String(), 2) || c.Seats.HasToProve(c.Ctx(), "f3", 1) {
		t.Error("f3 alone of these has to prove")
	}
	for i := range 4 {
		c.Queue(f(i), proof(t, f(i), f(i), value, 1))
	}
	c.NextBlock(time.Second)
	if has(f(3)) || !has(f(4)) {
		t.Error("f3 has proved, and f4 has not")
	}
	c.Refuse(seats.ErrDraw, f(3), proof(t, f(3), f(3), value, 1))
	var got []*seatsv1.EventSeated
	for status(t, c).Epoch == 1 {
		b := busy(c)
		got = append(got, chaintest.Events[*seatsv1.EventSeated](t, b)...)
		if status(t, c).Draw != nil && status(t, c).Draw.WalkHeight < b.Height {
			c.Refuse(seats.ErrDraw, f(4), proof(t, f(4), f(4), value, 1))
		}
	}
	if len(got) != 1 || votes(got[0].Seats, f(4)) != 0 {
		t.Fatalf("f4 has not proved: %v", got)
	}
	for i := range 4 {
		if n := votes(got[0].Seats, f(i)); n < 2_200 || n > 2_800 {
			t.Errorf("%s has won %d of 10,000 seats by a quarter of what counts", f(i).Name, n)
		}
	}
	for range 2 * length { // nobody proves
		got = append(got, chaintest.Events[*seatsv1.EventSeated](t, busy(c))...)
	}
	if len(got) != 1 {
		t.Errorf("nobody has proved, and seats are given: %v", got[1:])
	}
}

// Nobody chooses between two keys: a draw takes no proof by a key that counts from the next epoch on.
func TestNoChoiceBetweenKeys(t *testing.T) {
	c, f1 := chaintest.New(t, network(proving)...), chaintest.Named("f1")
	other := chaintest.Named("the other key of f1")
	c.Deliver(f1, &beaconv1.MsgSetKey{Account: f1.String(), Key: other.VRFKey()}) // counts from epoch 2 on
	for c.Height() < 2*long-1 {
		c.NextBlock(time.Second)
	}
	busy(c) // the last block of epoch 1, and the first that has a value
	var value []byte
	if d := status(t, c).Draw; d != nil {
		value = d.Value
	}
	busy(c)
	if s := status(t, c); s.Epoch != 2 {
		t.Fatalf("epoch %d", s.Epoch)
	}
	c.Refuse(seats.ErrDraw, f1, proof(t, f1, other, value, 1))
}

// Lots are fair: over many draws seats are distributed as binomial numbers are.
func TestLotsAreFair(t *testing.T) {
	c := chaintest.New(t, network(func(g *app.Genesis) {
		rules(func(p *seatsv1.Params) { p.Allocation = seats.Lots })(g)
		g.Epoch = 2
		for i := range g.Validators {
			g.Validators[i].Votes = int64(10 + i)
		}
	})...)
	sum, n := 0.0, 0.0
	for n < 5*120 {
		for _, e := range chaintest.Events[*seatsv1.EventSeated](t, busy(c)) {
			if e.Epoch < 2 { // the first set is on its way
				continue
			}
			for i, name := range founders {
				mean := 10_000 * float64(10+i) / 60
				d := float64(votes(e.Seats, chaintest.Named(name))) - mean
				sum, n = sum+d*d/mean, n+1
			}
		}
	}
	if math.Abs(sum-n) > 5*math.Sqrt(2*n) {
		t.Errorf("χ² is %.0f of %.0f numbers of seats", sum, n)
	}
}

// A set stays where a draw would leave too few members or seats, and says why. The chain goes on.
func TestSetsAreKept(t *testing.T) {
	leaves := func(c *chaintest.Chain, names ...string) {
		for _, n := range names {
			c.Queue(chaintest.Named(n), &seatsv1.MsgLeave{Account: chaintest.Named(n).String()})
		}
		c.NextBlock(time.Second)
	}
	for want, x := range map[string]struct {
		option chaintest.Option
		do     func(*chaintest.Chain)
	}{
		"3 members would have seats": {func(*app.Genesis) {}, func(c *chaintest.Chain) { leaves(c, "f1", "f2") }},
		"5000 of 10000 seats": {func(g *app.Genesis) {
			for i := range g.Validators {
				g.Validators[i].Bond = 10_000 * tally
			}
		}, func(*chaintest.Chain) {}},
		"want two units for each seat": {func(g *app.Genesis) { g.Policy.Base, g.Policy.Quorum = 10_000, 4_000 }, func(*chaintest.Chain) {}},
	} {
		c := chaintest.New(t, network(x.option)...)
		r := follow(t, c)
		if x.do(c); c.Height() > 1 {
			r.after(t, c.Last())
		}
		before := status(t, c).Set
		told := map[uint64]string{}
		for status(t, c).Epoch < 5 {
			b := busy(c)
			r.after(t, b)
			r.compare(t, c, b.Height)
			for _, e := range abandoned(t, b) {
				told[e.Epoch] = e.Reason
			}
		}
		for e := uint64(1); e < 5; e++ {
			if !strings.Contains(told[e], want) {
				t.Errorf("%s: epoch %d: %q", want, e, told[e])
			}
		}
		if got := status(t, c); !slices.Equal(got.Set.Seats, before.Seats) || got.Set.Height < c.Height()-epoch {
			t.Errorf("%s: the set has changed, or turns are found from long ago: %v", want, got)
		}
	}
}

// However many members there are, a draw ends within half an epoch.
func TestDrawsEndInHalfAnEpoch(t *testing.T) {
	for _, length := range []int64{4, 6, 10, 30} {
		c := chaintest.New(t, network(crowd(300, 10), func(g *app.Genesis) { g.Epoch = length })...)
		for range 2 {
			var begun int64
			for begun == 0 || status(t, c).Draw != nil {
				if b := busy(c); begun == 0 && status(t, c).Draw != nil {
					begun = b.Height
				}
			}
			if took := c.Height() - begun + 1; took > length/2 {
				t.Errorf("epochs of %d blocks: a draw takes %d", length, took)
			}
		}
	}
}

// What happens while a draw is under way does nothing to it: who joins, returns, is credited or delegated to has
// nothing of it, and who adds to its bond no more than by having had it before.
func TestDrawsSeeNothingOfNow(t *testing.T) {
	alice, carol := chaintest.Named("alice"), chaintest.Named("carol")
	m := func(i int) chaintest.Account { return chaintest.Named(fmt.Sprint("m", i)) }
	delegates := func(c *chaintest.Chain, to sdk.AccAddress) {
		c.Queue(carol, &seatsv1.MsgDelegate{Account: carol.String(), Member: to.String()})
	}
	var want *seatsv1.EventSeated
	for _, x := range []struct {
		name string
		do   func(*chaintest.Chain)
	}{
		{"nothing", func(*chaintest.Chain) {}},
		{"joins", func(c *chaintest.Chain) { c.Queue(alice, join(alice, 100_000*tally)) }},
		{"delegates", func(c *chaintest.Chain) { delegates(c, m(1).Address) }},
		{"withdraws", func(c *chaintest.Chain) { delegates(c, nil) }},
		{"is credited", func(c *chaintest.Chain) { credit(t, c, m(2), 30) }},
		{"forfeits", func(c *chaintest.Chain) {
			if err := c.Do(func(ctx sdk.Context) error { return c.Power.Forfeit(ctx, m(3).Address) }); err != nil {
				t.Fatal(err)
			}
		}},
		{"adds to a bond that suffices", func(c *chaintest.Chain) {
			c.Queue(chaintest.Named("f1"), &seatsv1.MsgBond{Account: chaintest.Named("f1").String(), Amount: 10 * tally})
		}},
	} {
		got := drawAround(t, x.do)
		if want == nil {
			want = got
		}
		if got.String() != want.String() || got.Weight != 38_500_000 || // five of 105 are not among the hundred
			votes(got.Seats, m(0)) < 2*votes(got.Seats, m(1)) {
			t.Errorf("%s: %v, want %v", x.name, got, want)
		}
	}
	back := drawAround(t, func(c *chaintest.Chain) {
		c.Queue(m(0), &seatsv1.MsgLeave{Account: m(0).String()}, join(m(0), 10_000*tally))
	})
	if got := votes(back.Seats, m(0)); got > 0 {
		t.Errorf("came back, and has %d votes at once", got)
	}
}

// drawAround returns what the draw of epoch 2 gives if something happens in the middle of it. Carol's power counts for
// the first of a hundred members, which have some of their own.
func drawAround(t *testing.T, do func(*chaintest.Chain)) *seatsv1.EventSeated {
	t.Helper()
	c, carol := chaintest.New(t, network(crowd(100, 1_000), func(g *app.Genesis) {
		g.Epoch = 40
		for i := range 100 {
			g.Accounts = append(g.Accounts, app.Account{Address: chaintest.Named(fmt.Sprint("m", i)).String(), Balance: 10_000 * tally})
		}
	})...), chaintest.Named("carol")
	empower(t, c, 100, 5)
	credit(t, c, carol, 10)
	c.Deliver(carol, &seatsv1.MsgDelegate{Account: carol.String(), Member: chaintest.Named("m0").String()})
	reach(t, c, 2)
	for range 2 { // some members are gone through
		busy(c)
	}
	if do(c); status(t, c).Draw == nil {
		t.Fatal("the draw is over")
	}
	var got []*seatsv1.EventSeated
	for status(t, c).Epoch == 2 {
		got = append(got, chaintest.Events[*seatsv1.EventSeated](t, busy(c))...)
	}
	if len(got) != 1 {
		t.Fatalf("seats are given %d times: %v", len(got), got)
	}
	return got[0]
}

// empower credits each of a crowd with tenths of a ut, of which six tenths count.
func empower(t *testing.T, c *chaintest.Chain, n int, tenths uint64) {
	t.Helper()
	if err := c.Do(func(ctx sdk.Context) error {
		for i := range n {
			if err := c.Power.Credit(ctx, chaintest.Named(fmt.Sprint("m", i)).Address, tenths*power.UT/10); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// Whoever is convicted or leaves before a draw is decided has nothing of it.
func TestWhoLeavesWhileDrawnHasNothing(t *testing.T) {
	for name, act := range map[string]func(*chaintest.Chain, chaintest.Account){
		"leaves": func(c *chaintest.Chain, who chaintest.Account) {
			c.Queue(who, &seatsv1.MsgLeave{Account: who.String()})
		},
		"signs twice": func(c *chaintest.Chain, who chaintest.Account) { accuse(c, 1, consensus(t, c, who)) },
	} {
		c := chaintest.New(t, network(crowd(100, 1_000), func(g *app.Genesis) { g.Epoch = 40 })...)
		empower(t, c, 100, 10)
		reach(t, c, 2)
		var who chaintest.Account
		for who.Name == "" {
			busy(c)
			for i := range 100 {
				m := chaintest.Named(fmt.Sprint("m", i))
				if votes(status(t, c).Draw.Best, m) > 0 {
					who = m
				}
			}
		}
		act(c, who)
		for status(t, c).Draw != nil {
			busy(c)
		}
		if got := member(t, c, who).Member; got.Votes != 0 {
			t.Errorf("%s: it has %d votes", name, got.Votes)
		}
	}
}

// An epoch that begins while a draw is under way has its own, once that is over, even where it has kept the set.
func TestDrawsFollowOneAnother(t *testing.T) {
	c := chaintest.New(t, network(crowd(100, 1), func(g *app.Genesis) { g.Epoch = 40 })...)
	for c.Height() < 2*40-1 {
		c.NextBlock(time.Second)
	}
	busy(c) // in the last block of epoch 1
	for _, n := range []string{"f1", "f2"} {
		c.Queue(chaintest.Named(n), &seatsv1.MsgLeave{Account: chaintest.Named(n).String()})
	}
	var told []uint64
	for range 30 {
		for _, e := range abandoned(t, busy(c)) {
			told = append(told, e.Epoch)
		}
	}
	if !slices.Equal(told, []uint64{1, 2}) {
		t.Errorf("sets were kept in the epochs %v", told)
	}
}

// A vote that changes the rules ends the draw under way: seats of one draw follow one set of rules.
func TestRulesChangeBetweenDraws(t *testing.T) {
	senate := chaintest.Named("senate")
	c := chaintest.New(t, network(crowd(100, 1), chaintest.Fund(tally, "senate"), chaintest.Authority("senate"),
		func(g *app.Genesis) { g.Epoch = 40 })...)
	reach(t, c, 1)
	p := seats.DefaultParams()
	p.Allocation = seats.Lots
	b := c.Deliver(senate, &seatsv1.MsgUpdateParams{Authority: senate.String(), Params: p})
	if told := abandoned(t, b); len(told) != 1 || told[0].Epoch != 1 || status(t, c).Draw != nil {
		t.Fatalf("the draw under way goes on: %v", told)
	}
	for _, e := range reach(t, c, 3) {
		if e.Epoch != 2 {
			t.Errorf("seats are given in epoch %d", e.Epoch)
		}
	}
}

// An idle chain writes nothing once its draw is over. Where nobody has a bond nothing is drawn.
func TestIdleChainsWriteNothing(t *testing.T) {
	c := chaintest.New(t, network()...)
	reach(t, c, 1)
	for status(t, c).Draw != nil {
		c.NextBlock(time.Second)
	}
	hash := c.NextBlock(time.Second).AppHash
	for range 4 * epoch {
		if got := c.NextBlock(time.Second).AppHash; !slices.Equal(got, hash) {
			t.Fatalf("block %d has written something", c.Height())
		}
	}
	c = chaintest.New(t, network(func(g *app.Genesis) {
		for i := range g.Validators {
			g.Validators[i].Bond = 0
		}
	})...)
	for range 4 * epoch {
		b := busy(c)
		if s := status(t, c); s.Draw != nil || s.LastDrawEpoch != 0 || len(abandoned(t, b)) > 0 || len(b.ValidatorUpdates) > 0 {
			t.Fatalf("nobody has a bond, and a draw is held: %v", s)
		}
	}
}

// A node that stops in the middle of a draw goes on with it.
func TestDrawsSurviveRestarts(t *testing.T) {
	set := func(restarts bool) []sortition.Seat {
		db := dbm.NewMemDB()
		c := chaintest.Open(t, db, network(crowd(60, 10))...)
		credit(t, c, chaintest.Named("m7"), 10)
		reach(t, c, 2)
		if status(t, c).Draw == nil {
			t.Fatal("the draw is over")
		}
		if restarts {
			c.Restart(db)
		}
		reach(t, c, 4)
		var out []sortition.Seat
		for _, s := range status(t, c).Set.Seats {
			out = append(out, sortition.Seat{Member: s.Member, Votes: s.Votes})
		}
		return out
	}
	if a, b := set(false), set(true); !slices.Equal(a, b) || len(a) != 6 {
		t.Errorf("without a restart %v, with one %v", a, b)
	}
}
