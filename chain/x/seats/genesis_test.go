package seats_test

import (
	"math"
	"testing"
	"time"

	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/x/seats"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// genesis is a state that has some of everything.
func genesis() *seatsv1.GenesisState {
	m := func(name string, votes int64, bond uint64, s seatsv1.Status) seatsv1.Member {
		v := chaintest.Named(name)
		return seatsv1.Member{Account: v.String(), ConsensusKey: v.PeerKey(), Votes: votes, Bond: bond, Status: s}
	}
	a, b, c, d := chaintest.Named("a"), chaintest.Named("b"), chaintest.Named("c"), chaintest.Named("d")
	return &seatsv1.GenesisState{
		Params: seats.DefaultParams(), Authority: a.String(),
		Members: []seatsv1.Member{
			m("a", 5, 10*tally, seatsv1.STATUS_ACTIVE), m("b", 1, 0, seatsv1.STATUS_LEFT),
			m("c", 0, 10*tally, seatsv1.STATUS_JAILED), m("d", 0, 0, seatsv1.STATUS_TOMBSTONED),
		},
		Delegations: []seatsv1.Delegation{{Account: b.String(), Member: a.String()}, {Account: d.String(), Member: c.String()}},
		Unbonding: []seatsv1.Unbonding{
			{Account: b.String(), UntilMs: 5, Amount: 7}, {Account: b.String(), UntilMs: 6, Amount: 7}, {Account: d.String(), UntilMs: 5, Amount: 7},
		},
		LastDrawEpoch: 3,
	}
}

// A state that contradicts itself is refused, and so is one that could not be held.
func TestGenesisRefusesContradictions(t *testing.T) {
	if err := seats.ValidateGenesis(genesis()); err != nil {
		t.Fatal(err)
	}
	for name, bend := range map[string]func(*seatsv1.GenesisState){
		"rules that cannot be followed": func(g *seatsv1.GenesisState) { g.Params.Seats = 0 },
		"an authority that is nobody":   func(g *seatsv1.GenesisState) { g.Authority = "x" },
		"no members":                    func(g *seatsv1.GenesisState) { g.Members = nil },
		"nobody has votes":              func(g *seatsv1.GenesisState) { g.Members[0].Votes, g.Members[1].Votes = 0, 0 },
		"votes below 0":                 func(g *seatsv1.GenesisState) { g.Members[0].Votes = -1 },
		"votes of more than CometBFT's": func(g *seatsv1.GenesisState) { g.Members[0].Votes = math.MaxInt64 / 8 },
		"an account that is none":       func(g *seatsv1.GenesisState) { g.Members[0].Account = "x" },
		"an account twice":              func(g *seatsv1.GenesisState) { g.Members[0].Account = g.Members[1].Account },
		"a key twice":                   func(g *seatsv1.GenesisState) { g.Members[0].ConsensusKey = g.Members[1].ConsensusKey },
		"no key":                        func(g *seatsv1.GenesisState) { g.Members[0].ConsensusKey = nil },
		"a weak key":                    func(g *seatsv1.GenesisState) { g.Members[0].ConsensusKey = make([]byte, 32) },
		"no status":                     func(g *seatsv1.GenesisState) { g.Members[0].Status = 0 },
		"another status":                func(g *seatsv1.GenesisState) { g.Members[0].Status = 5 },
		"more bonds than may exist":     func(g *seatsv1.GenesisState) { g.Members[0].Bond = coin.MaxSupply },
		"a bond of who has left":        func(g *seatsv1.GenesisState) { g.Members[1].Bond = 1 },
		"a bond of a convict":           func(g *seatsv1.GenesisState) { g.Members[3].Bond = 1 },
		"more was earned than all":      func(g *seatsv1.GenesisState) { g.Members[0].EarnedBps = 10_001 },
		"a time that overflows":         func(g *seatsv1.GenesisState) { g.Members[0].UncoveredMs = math.MaxInt64 },
		"a time before all":             func(g *seatsv1.GenesisState) { g.Members[0].UncoveredMs = -1 },
		"an output of no size":          func(g *seatsv1.GenesisState) { g.Members[0].Output = make([]byte, 7) },
		"power that counts twice": func(g *seatsv1.GenesisState) {
			g.Delegations = append(g.Delegations, seatsv1.Delegation{Account: g.Delegations[0].Account, Member: g.Members[2].Account})
		},
		"power of nobody":                func(g *seatsv1.GenesisState) { g.Delegations[0].Account = "" },
		"nothing waits to come back":     func(g *seatsv1.GenesisState) { g.Unbonding[0].Amount = 0 },
		"it comes back to nobody":        func(g *seatsv1.GenesisState) { g.Unbonding[0].Account = "x" },
		"it comes back before time":      func(g *seatsv1.GenesisState) { g.Unbonding[0].UntilMs = -1 },
		"more waits than may exist":      func(g *seatsv1.GenesisState) { g.Unbonding[0].Amount = coin.MaxSupply },
		"with bonds it is more than all": func(g *seatsv1.GenesisState) { g.Unbonding[0].Amount = coin.MaxSupply - 20*tally - 13 },
		"it waits in parts that overflow": func(g *seatsv1.GenesisState) {
			g.Unbonding[0].Amount, g.Unbonding[1].Amount = math.MaxUint64, math.MaxUint64
		},
	} {
		g := genesis()
		if bend(g); seats.ValidateGenesis(g) == nil {
			t.Errorf("%s: is taken", name)
		}
	}
}

// A mark ahead of its stream would break every change of that account's power, its conviction too.
func TestGenesisRefusesMarksAhead(t *testing.T) {
	ctx, svc, cdc := chaintest.Store(t)
	k := seats.NewKeeper(cdc, svc, seats.Needs{Bank: chaintest.NewBank(), Power: &powers{}, Founders: nobody{}}, "insurance")
	k.Follow(chance{length: 10, first: 5})
	g := genesis()
	g.Rewards = []seatsv1.Rewards{{Account: g.Delegations[0].Account, PerPower: []byte{1}, Shift: 100}}
	g.UnclaimedRewards = 1
	if err := k.InitGenesis(ctx, g); err == nil {
		t.Error("taken")
	}
}

// Another chain begins with no blocks counted, so nobody has missed any.
func TestMissesAreNotExported(t *testing.T) {
	c := chaintest.New(t, network(func(g *app.Genesis) { g.Epoch = 100 })...)
	for i := range 60 { // it signs 48 of 60
		signed(t, c, cmtproto.BlockIDFlagAbsent, map[bool]string{true: "f4"}[i%5 == 0])
		busy(c)
	}
	if got := member(t, c, chaintest.Named("f4")).Member.Missed; got < 10 {
		t.Fatalf("it missed %d", got)
	}
	g, err := c.Seats.ExportGenesis(c.Ctx())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range g.Members {
		if m.Missed != 0 || m.MissedEpoch != 0 || m.MissedBefore != 0 {
			t.Errorf("%s missed %d and %d blocks of epochs that begin anew", m.Account, m.Missed, m.MissedBefore)
		}
	}
}

// A state of which an epoch to come has had its draw is not taken: nobody would be drawn until then.
func TestGenesisRefusesDrawsToCome(t *testing.T) {
	for drawn, ok := range map[uint64]bool{0: true, 3: true, 4: false, math.MaxUint64: false} {
		ctx, svc, cdc := chaintest.Store(t)
		k := seats.NewKeeper(cdc, svc, seats.Needs{Power: &powers{}}, "insurance")
		k.Follow(chance{first: 3, length: 10})
		g := genesis()
		g.LastDrawEpoch = drawn
		if err := k.InitGenesis(ctx, g); (err == nil) != ok {
			t.Errorf("in epoch 3, drawn in %d: %v", drawn, err)
		}
	}
}

// A chain goes on from what another has exported: with the same members, bonds, delegations and power, in the same
// epoch, of which a draw under way is lost.
func TestExportGoesOn(t *testing.T) {
	c := chaintest.New(t, network(crowd(60, 10))...)
	alice, carol := chaintest.Named("alice"), chaintest.Named("carol")
	credit(t, c, alice, 20)
	credit(t, c, carol, 5)
	c.Deliver(alice, join(alice, 100_000*tally))
	c.Deliver(carol, &seatsv1.MsgDelegate{Account: carol.String(), Member: alice.String()})
	c.Deliver(alice, &seatsv1.MsgUnbond{Account: alice.String(), Amount: 10 * tally})
	leaver := chaintest.Named("m3")
	c.Deliver(leaver, &seatsv1.MsgLeave{Account: leaver.String()})
	pass(t, c, 3)
	for status(t, c).Draw == nil {
		busy(c)
	}
	fork := c.Fork()
	had, err := c.Seats.ExportGenesis(c.Ctx())
	has, e := fork.Seats.ExportGenesis(fork.Ctx())
	if err != nil || e != nil || had.String() != has.String() {
		t.Fatalf("exported\n%v, imported\n%v (%v, %v)", had, has, err, e)
	}
	if err := seats.ValidateGenesis(has); err != nil {
		t.Fatal(err)
	}
	for _, who := range []chaintest.Account{alice, leaver, chaintest.Named("f1")} {
		if a, b := member(t, c, who), member(t, fork, who); a.String() != b.String() {
			t.Errorf("%s: %v, and imported %v", who.Name, a, b)
		}
	}
	a, b := status(t, c), status(t, fork)
	if a.Epoch != b.Epoch || a.Totals != b.Totals || a.LastDrawEpoch != b.LastDrawEpoch || b.Draw != nil {
		t.Errorf("%v, and imported %v", a, b)
	}
	r, before := follow(t, fork), votes(b.Set.Seats, alice)
	for range 4 * epoch {
		block := busy(fork)
		r.after(t, block)
		r.compare(t, fork, block.Height)
	}
	if got := status(t, fork); votes(got.Set.Seats, alice)*10_000/total(got.Set.Seats) != 3_750 || before == 0 {
		t.Errorf("alice has 15 ut of 40 that count: %v", got.Set)
	}
	fork.NextBlock(22 * 24 * time.Hour)
	pass(t, fork, 3)
	if _, err := seatsv1.NewQueryClient(fork).Member(t.Context(), &seatsv1.QueryMemberRequest{Account: leaver.String()}); err == nil {
		t.Error("who has left is not forgotten")
	}
}
