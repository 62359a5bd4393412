package app_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	dbm "github.com/cosmos/cosmos-db"

	"cosmossdk.io/log/v2"

	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	upgradetypes "github.com/cosmos/cosmos-sdk/x/upgrade/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/x/policy"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// voted returns a chain of which the founders have decided a plan, a height ahead of now.
func voted(t *testing.T, db dbm.DB, ahead int64) (*chaintest.Chain, int64) {
	t.Helper()
	c := chaintest.Open(t, db, append(network(), func(g *app.Genesis) {
		g.Policy = policy.DefaultGenesis().Params
		g.Policy.VotingMs, g.Policy.DelayMs = time.Hour.Milliseconds(), time.Hour.Milliseconds()
	})...)
	founder, alice := chaintest.Named("producer"), chaintest.Named("alice")
	height := c.Height() + 4 + ahead // of the proposal, of the vote, of its end, of its execution
	plan := &upgradetypes.MsgSoftwareUpgrade{Authority: address.Policy().String(), Plan: upgradetypes.Plan{Name: "dearer", Height: height, Info: "tally 2"}}
	packed, err := codectypes.NewAnyWithValue(plan)
	if err != nil {
		t.Fatal(err)
	}
	c.Deliver(alice, &policyv1.MsgPropose{
		Proposer: alice.String(), Title: "Upgrade", Summary: "Gas costs more.", Deposit: policy.DefaultGenesis().Params.Deposit, Messages: []*codectypes.Any{packed},
	})
	c.Deliver(founder, &policyv1.MsgVote{Voter: founder.String(), Proposal: 0, Option: policyv1.OPTION_YES})
	c.NextBlock(time.Hour)
	c.NextBlock(time.Hour)
	if got, err := c.Plan(c.Ctx()); err != nil || got.Height != height {
		t.Fatalf("plan %v, %v", got, err)
	}
	return c, height
}

// refused returns why the chain's version makes no next block.
func refused(t *testing.T, c *chaintest.Chain) *app.UpgradeError {
	t.Helper()
	_, err := c.FinalizeBlock(&abci.RequestFinalizeBlock{Height: c.Height() + 1, Time: c.Now(), Hash: make([]byte, 32), ProposerAddress: c.Proposer()})
	var why *app.UpgradeError
	if !errors.As(err, &why) {
		t.Fatalf("height %d: %v", c.Height()+1, err)
	}
	return why
}

func gasPrice(t *testing.T, c *chaintest.Chain) uint64 {
	t.Helper()
	p, err := c.Block.Params(c.Ctx())
	if err != nil {
		t.Fatal(err)
	}
	return p.GasPrice
}

// A vote sets the height. The version of before makes blocks until then and none after, the one of after none before.
func TestUpgradeByAVote(t *testing.T) {
	db, later := dbm.NewMemDB(), chaintest.NewDearer()
	c, height := voted(t, db, 3)
	before := gasPrice(t, c)
	later.Restart(c, db)
	if why := refused(t, c); !why.Early || why.Plan.Height != height {
		t.Errorf("the later version before its height: %v", why)
	}
	c.Restart(db)
	for c.Height() < height-1 {
		c.NextBlock(time.Second)
	}
	for range 2 { // as often as it is tried
		if why := refused(t, c); why.Early || !strings.Contains(why.Error(), `"dearer" ("tally 2")`) {
			t.Errorf("the earlier version at the height: %v", why)
		}
		c.Restart(db)
	}
	later.Restart(c, db)
	c.NextBlock(time.Second)
	if got := gasPrice(t, c); got != 3*before {
		t.Errorf("gas costs %d after the upgrade, %d before", got, before)
	}
	if plan, err := c.Plan(c.Ctx()); !errors.Is(err, upgradetypes.ErrNoUpgradePlanFound) {
		t.Errorf("the plan is still there: %v, %v", plan, err)
	}
	later.Restart(c, db)
	c.Deliver(chaintest.Named("alice"), send(chaintest.Named("alice"), chaintest.Named("bob"), 1))
	if got := sdk.UnwrapSDKContext(c.Ctx()).KVStore(later.Key).Get([]byte("begun")); !bytes.Equal(got, []byte{1}) {
		t.Errorf("the new store has %x", got)
	}
	if _, err := app.New(log.NewNopLogger(), db, chaintest.ChainID); err != nil {
		t.Fatal(err) // it can be looked at
	}
	c.Restart(db)
	if why := refused(t, c); why.Early || why.Plan.Height != height {
		t.Errorf("the earlier version after the height: %v", why)
	}
}

// leave leaves in db what a kill does that comes after the new store is stored, and before the block is.
func leave(t *testing.T, d chaintest.Dearer, c *chaintest.Chain, db dbm.DB) {
	t.Helper()
	other := dbm.NewMemDB()
	all, err := db.Iterator(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for ; all.Valid(); all.Next() {
		if err := other.Set(all.Key(), all.Value()); err != nil {
			t.Fatal(err)
		}
	}
	a, err := d.Open(other)
	if err == nil {
		_, err = a.FinalizeBlock(&abci.RequestFinalizeBlock{Height: c.Height() + 1, Time: c.Now(), Hash: make([]byte, 32), ProposerAddress: c.Proposer()})
	}
	if err == nil {
		_, err = a.Commit()
	}
	prefix := []byte("s/k:" + d.Key.Name() + "/")
	if err != nil {
		t.Fatal(err)
	}
	left := 0
	some, err := other.Iterator(prefix, storetypes.PrefixEndBytes(prefix))
	if err != nil {
		t.Fatal(err)
	}
	for ; some.Valid(); some.Next() {
		if err := db.Set(some.Key(), some.Value()); err != nil {
			t.Fatal(err)
		}
		left++
	}
	if err := errors.Join(all.Close(), some.Close()); err != nil || left == 0 {
		t.Fatalf("%d keys are left, %v", left, err)
	}
}

// However a node came to the height, and how often it was killed there, it has the state of the others.
func TestUpgradesEndInOneState(t *testing.T) {
	var want []byte
	for _, kills := range []int{0, 1, 3} {
		db, later := dbm.NewMemDB(), chaintest.NewDearer()
		c, height := voted(t, db, 1)
		for c.Height() < height-1 {
			c.NextBlock(time.Second)
		}
		if kills > 1 {
			leave(t, later, c, db)
		}
		later.Restart(c, db)
		for range kills {
			if _, err := c.FinalizeBlock(&abci.RequestFinalizeBlock{Height: height, Time: c.Now(), Hash: make([]byte, 32), ProposerAddress: c.Proposer()}); err != nil {
				t.Fatal(err)
			}
			later.Restart(c, db) // before it was stored
		}
		got := c.NextBlock(time.Second).AppHash
		if want == nil {
			want = got
		}
		if !bytes.Equal(got, want) {
			t.Errorf("with %d kills the app hash is %X, without %X", kills, got, want)
		}
	}
}

// Whoever runs the later version where nobody voted for it computes something else than the others, with a new store or without.
// So it must not begin.
func TestUpgradeWithoutAVote(t *testing.T) {
	db, later := dbm.NewMemDB(), chaintest.NewDearer()
	c := chaintest.Open(t, db, network()...)
	for _, begin := range []func(){
		func() { later.Restart(c, db) },
		func() { c.RestartAs([]app.Upgrade{{Name: "later"}}, db) },
	} {
		begin()
		_, err := c.FinalizeBlock(&abci.RequestFinalizeBlock{Height: c.Height() + 1, Time: c.Now(), Hash: make([]byte, 32), ProposerAddress: c.Proposer()})
		if err == nil || !strings.Contains(err.Error(), "run the version before it") {
			t.Errorf("%v", err)
		}
	}
	c.Restart(db)
	c.NextBlock(time.Second) // nothing was lost
}

// Nobody but a vote plans an upgrade, or ends a plan.
func TestWhoPlansUpgrades(t *testing.T) {
	c := chaintest.New(t, network()...)
	alice := chaintest.Named("alice")
	for _, m := range []sdk.Msg{
		&upgradetypes.MsgSoftwareUpgrade{Authority: alice.String(), Plan: upgradetypes.Plan{Name: "mine", Height: 1000}},
		&upgradetypes.MsgCancelUpgrade{Authority: alice.String()},
	} {
		c.Queue(alice, m)
		b := c.NextBlock(time.Second)
		if r := b.TxResults[len(b.TxResults)-1]; !strings.Contains(r.Log, "invalid authority") {
			t.Errorf("%T: %q", m, r.Log)
		}
	}
}
