package seats_test

import (
	"testing"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/x/seats"
	"github.com/tally-network/tally/core/power"
	beaconv1 "github.com/tally-network/tally/gen/tally/beacon/v1"
	reservev1 "github.com/tally-network/tally/gen/tally/reserve/v1"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// paying is a network whose reserve pays seats alone, every second. Founders have no part of so small a base.
func paying(g *app.Genesis) {
	g.Policy.Base, g.Policy.Quorum = 600_000, 600_000 // the power of 1 ut of training
	g.Reserve = 1_000_000_000 * tally
	g.Rewards = app.Rewards{EpochMs: 1_000, Params: reservev1.Params{HalvingEpochs: 35_064, Cap: 800, SeatsBps: 10_000, JoiningUt: 1}}
}

// earn has the network compute, so that validators are paid for it, and lets epochs of rewards pass.
func earn(t *testing.T, c *chaintest.Chain, by chaintest.Account, uts uint64) {
	t.Helper()
	credit(t, c, by, uts)
	for range 4 {
		busy(c)
	}
}

func due(t *testing.T, c *chaintest.Chain, who chaintest.Account) uint64 {
	t.Helper()
	r, err := reservev1.NewQueryClient(c).Account(t.Context(), &reservev1.QueryAccountRequest{Account: who.String()})
	if err != nil {
		t.Fatal(err)
	}
	return r.Due
}

// A member keeps its commission, and those whose power counts for it have the rest, each by its power when it came.
func TestRewardsAreSharedByPower(t *testing.T) {
	c := chaintest.New(t, network(paying)...)
	producer, alice, carol, bob := chaintest.Named("producer"), chaintest.Named("alice"), chaintest.Named("carol"), chaintest.Named("bob")
	for _, a := range []chaintest.Account{alice, carol} {
		c.Deliver(a, &seatsv1.MsgDelegate{Account: a.String(), Member: producer.String()})
	}
	credit(t, c, alice, 1)
	credit(t, c, carol, 3)
	pass(t, c, 3) // draws count it
	before := due(t, c, producer)
	earn(t, c, bob, 10) // whose power counts for nobody
	a, b, own := due(t, c, alice), due(t, c, carol), due(t, c, producer)-before
	if a == 0 || b < 3*a-3 || b > 3*a+3 {
		t.Fatalf("alice is due %d utally by 1 ut, and carol %d by 3", a, b)
	}
	if all := a + b + own; own < all/10 || own > all/10+3 {
		t.Errorf("the member keeps %d of %d", own, all)
	}
	// Who leaves keeps what it has earned, and earns no more.
	c.Deliver(carol, &seatsv1.MsgDelegate{Account: carol.String()})
	b = due(t, c, carol)
	earn(t, c, bob, 10)
	if got := due(t, c, carol); got != b {
		t.Errorf("carol left with %d, and is due %d", b, got)
	}
	if got := due(t, c, alice); got <= a {
		t.Errorf("alice is due %d, as before", got)
	}
	for _, who := range []chaintest.Account{carol, alice, producer} {
		before, want := c.Balance(who.Address), due(t, c, who)
		c.Queue(who, &reservev1.MsgClaim{Account: who.String()})
		if r := c.NextBlock(0).TxResults[0]; r.Code != 0 {
			t.Fatal(r.Log)
		}
		if got := c.Balance(who.Address) - before; got < want {
			t.Errorf("%s claimed %d utally of %d", who.Name, got, want)
		}
	}
	if got := due(t, c, carol); got != 0 {
		t.Errorf("carol has claimed, and is due %d", got)
	}
}

// What founders have of the base earns for them alone: whoever delegates a crumb gets the part of a crumb.
func TestCrumbsEarnCrumbs(t *testing.T) {
	c := chaintest.New(t, network(paying, func(g *app.Genesis) { g.Policy.Base, g.Policy.Quorum = base*1_000_000, base*300_000 })...)
	producer, alice, bob := chaintest.Named("producer"), chaintest.Named("alice"), chaintest.Named("bob")
	c.Deliver(alice, &seatsv1.MsgDelegate{Account: alice.String(), Member: producer.String()})
	credit(t, c, alice, 1)
	earn(t, c, bob, 10)
	if got := due(t, c, alice); got != 0 {
		t.Errorf("the seats are those of the genesis, and alice is due %d of them", got)
	}
	pass(t, c, 3)
	before := due(t, c, producer)
	earn(t, c, bob, 10)
	a, own := due(t, c, alice), due(t, c, producer)-before
	earned := uint64(member(t, c, producer).Member.EarnedBps) // six tenths of a ut of 0.6 + 39.4/5
	if earned < 600 || earned > 800 {
		t.Fatalf("%d bps of the founder's weight are power's", earned)
	}
	if want := (a + own) * earned / 10_000 * 9 / 10; a < want-want/100 || a > want+want/100 {
		t.Errorf("alice is due %d utally of %d, want %d", a, a+own, want)
	}
}

// Once most of the power that earned has left, whoever stays with a crumb has the part of a crumb still.
func TestCrumbsInheritNothing(t *testing.T) {
	c := chaintest.New(t, network(paying)...)
	producer, alice, carol, bob := chaintest.Named("producer"), chaintest.Named("alice"), chaintest.Named("carol"), chaintest.Named("bob")
	for _, a := range []chaintest.Account{alice, carol} {
		c.Deliver(a, &seatsv1.MsgDelegate{Account: a.String(), Member: producer.String()})
	}
	if err := c.Do(func(ctx sdk.Context) error { return c.Power.Credit(ctx, alice.Address, power.UT/1_000) }); err != nil {
		t.Fatal(err)
	}
	credit(t, c, carol, 1_000)
	pass(t, c, 3)
	c.Deliver(carol, &seatsv1.MsgDelegate{Account: carol.String()})
	before, own := due(t, c, alice), due(t, c, producer)
	for range 3 {
		earn(t, c, bob, 10)
	}
	if a, p := due(t, c, alice)-before, due(t, c, producer)-own; p == 0 || a > p/100 { // 0.0006 ut of the 0.4 for which the bond stands
		t.Errorf("a crumb of the power that earned is due %d, and the member %d", a, p)
	}
}

// Power decays while a chain is quiet, and nobody's has left: who delegates has the same part however late a reward comes.
func TestDecayIsNoDeparture(t *testing.T) {
	for _, wait := range []time.Duration{time.Hour, 24 * time.Hour, 7 * 24 * time.Hour} {
		c := chaintest.New(t, network(paying, func(g *app.Genesis) { g.Rewards.EpochMs = 3_600_000 })...)
		producer, alice, bob := chaintest.Named("producer"), chaintest.Named("alice"), chaintest.Named("bob")
		c.Deliver(alice, &seatsv1.MsgDelegate{Account: alice.String(), Member: producer.String()})
		credit(t, c, alice, 1_000)
		pass(t, c, 4)
		credit(t, c, bob, 1_000)
		busy(c)
		c.NextBlock(wait)
		for range 3 {
			busy(c)
		}
		a, p := float64(due(t, c, alice)), float64(due(t, c, producer))
		if part := a / (a + p); part < 0.895 {
			t.Errorf("after %v the one who delegates has %.4f, want 0.9", wait, part)
		}
	}
}

// Rewards of a member that makes no block any more can be had without it.
func TestClaimsSettleTheMember(t *testing.T) {
	c := chaintest.New(t, network(paying, func(g *app.Genesis) {
		g.Rewards.EpochMs = 5_000
		g.Keys = append(g.Keys, beaconv1.Key{Account: chaintest.Named("f1").String(), Key: chaintest.Named("f1").VRFKey()})
	})...)
	producer, alice, bob := chaintest.Named("producer"), chaintest.Named("alice"), chaintest.Named("bob")
	c.Deliver(alice, &seatsv1.MsgDelegate{Account: alice.String(), Member: producer.String()})
	credit(t, c, alice, 1)
	pass(t, c, 3)
	for range 2 { // one of these is of one epoch of rewards
		credit(t, c, bob, 10)
		busy(c)
	}
	c.ProposedBy(consensus(t, c, chaintest.Named("f1")))
	c.ProveWith(chaintest.Named("f1").VRF)
	c.NextBlock(6 * time.Second)
	told, before := due(t, c, alice), c.Balance(alice.Address)
	c.Deliver(alice, &reservev1.MsgClaim{Account: alice.String()})
	if got := c.Balance(alice.Address) - before; got <= told {
		t.Errorf("alice has claimed %d utally, and was told of %d", got, told)
	}
	if r, err := reservev1.NewQueryClient(c).Account(t.Context(), &reservev1.QueryAccountRequest{Account: producer.String()}); err != nil || r.Due == 0 {
		t.Errorf("the member has %v of it (%v)", r, err)
	}
}

// Whose power is gone keeps what it has earned before.
func TestRewardsOfTheConvicted(t *testing.T) {
	c := chaintest.New(t, network(paying)...)
	producer, alice, bob := chaintest.Named("producer"), chaintest.Named("alice"), chaintest.Named("bob")
	c.Deliver(alice, &seatsv1.MsgDelegate{Account: alice.String(), Member: producer.String()})
	credit(t, c, alice, 1)
	pass(t, c, 3)
	earn(t, c, bob, 10)
	had := due(t, c, alice)
	if err := c.Do(func(ctx sdk.Context) error { return c.Power.Forfeit(ctx, alice.Address) }); err != nil {
		t.Fatal(err)
	}
	had = max(had, due(t, c, alice))
	earn(t, c, bob, 10)
	if got := due(t, c, alice); had == 0 || got != had {
		t.Errorf("due %d before, %d after", had, got)
	}
}

// What is shared goes on in another chain, to the utally.
func TestSharesAreExported(t *testing.T) {
	c := chaintest.New(t, network(paying)...)
	producer, alice, bob := chaintest.Named("producer"), chaintest.Named("alice"), chaintest.Named("bob")
	c.Deliver(alice, &seatsv1.MsgDelegate{Account: alice.String(), Member: producer.String()})
	credit(t, c, alice, 1)
	pass(t, c, 3)
	earn(t, c, bob, 10)
	credit(t, c, alice, 1) // her share is reckoned before it counts
	g, err := c.Seats.ExportGenesis(c.Ctx())
	if err != nil || len(g.CumulativeRewards) != 1 || len(g.Rewards) == 0 || g.UnclaimedRewards == 0 {
		t.Fatalf("%+v, %v", g, err)
	}
	if err := seats.ValidateGenesis(g); err != nil {
		t.Fatal(err)
	}
	for name, bend := range map[string]func(*seatsv1.GenesisState){
		"income of nobody":   func(g *seatsv1.GenesisState) { g.CumulativeRewards[0].Member = "x" },
		"an income too far":  func(g *seatsv1.GenesisState) { g.CumulativeRewards[0].Shift = 1 << 20 },
		"a share beyond all": func(g *seatsv1.GenesisState) { g.Rewards[0].Due = g.UnclaimedRewards + 1 },
		"shares beyond all": func(g *seatsv1.GenesisState) {
			g.Rewards[0].Due = g.UnclaimedRewards
			g.Rewards = append(g.Rewards, seatsv1.Rewards{Account: chaintest.Named("carol").String(), Due: 1})
		},
		"more than may exist":    func(g *seatsv1.GenesisState) { g.UnclaimedRewards = 1 << 63 },
		"the share of nobody":    func(g *seatsv1.GenesisState) { g.Rewards[0].Account = "x" },
		"a mark that is no mark": func(g *seatsv1.GenesisState) { g.Rewards[0].Shift = 1 << 20 },
	} {
		h, err := c.Seats.ExportGenesis(c.Ctx())
		if err != nil {
			t.Fatal(err)
		}
		if bend(h); seats.ValidateGenesis(h) == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}
