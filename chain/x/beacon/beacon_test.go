package beacon_test

import (
	"context"
	"slices"
	"testing"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"

	"cosmossdk.io/collections"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/x/beacon"
	beaconv1 "github.com/tally-network/tally/gen/tally/beacon/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"

	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/app"
)

var alice, bob, producer = chaintest.Named("alice"), chaintest.Named("bob"), chaintest.Named("producer")

// set is the validators of a keeper that is tested alone: alice proposes.
type set struct{}

func (set) Account(_ context.Context, consensus []byte) (sdk.AccAddress, error) {
	if string(consensus) != "alice" {
		return nil, collections.ErrNotFound
	}
	return alice.Address, nil
}
func (set) Has(_ context.Context, a sdk.AccAddress) (bool, error) {
	return a.Equals(alice.Address), nil
}
func (set) Turns(_ context.Context, _ int64, n int) ([]sdk.AccAddress, error) {
	return slices.Repeat([]sdk.AccAddress{alice.Address}, n), nil
}

func genesis() *beaconv1.GenesisState {
	return &beaconv1.GenesisState{EpochBlocks: 4, Keys: []beaconv1.Key{{Account: alice.String(), Key: alice.VRFKey()}}}
}

func TestGenesis(t *testing.T) {
	ctx, svc, cdc := chaintest.Store(t)
	k := beacon.NewKeeper(cdc, svc, set{})
	if err := k.InitGenesis(ctx, genesis()); err != nil {
		t.Fatal(err)
	}
	g, err := k.ExportGenesis(ctx.WithBlockHeight(9))
	if err != nil || g.Epoch != 2 || len(g.Keys) != 1 || g.State == nil {
		t.Fatal(g, err)
	}
	if err := beacon.ValidateGenesis(g); err != nil {
		t.Fatal(err)
	}
	ctx2, svc, cdc := chaintest.Store(t)
	again := beacon.NewKeeper(cdc, svc, set{})
	if err := again.InitGenesis(ctx2, g); err != nil {
		t.Fatal(err)
	}
	if back, err := again.ExportGenesis(ctx2); err != nil || back.String() != g.String() {
		t.Fatalf("%v, %v", back, err)
	}
	if err := again.Invariant(ctx2); err != nil {
		t.Fatal(err)
	}
}

func TestValidateGenesis(t *testing.T) {
	if err := beacon.ValidateGenesis(genesis()); err != nil {
		t.Fatal(err)
	}
	for name, bend := range map[string]func(*beaconv1.GenesisState){
		"no epoch": func(g *beaconv1.GenesisState) { g.EpochBlocks = 0 },
		"no value": func(g *beaconv1.GenesisState) { g.State = &beaconv1.State{} },
		"height": func(g *beaconv1.GenesisState) {
			g.State = &beaconv1.State{Value: alice.VRFKey(), Height: 1, Folds: []beaconv1.Fold{{Value: alice.VRFKey()}}}
		},
		"no fold":           func(g *beaconv1.GenesisState) { g.State = &beaconv1.State{Value: alice.VRFKey()} },
		"account":           func(g *beaconv1.GenesisState) { g.Keys[0].Account = "x" },
		"key":               func(g *beaconv1.GenesisState) { g.Keys[0].Key = make([]byte, 32) },
		"no key":            func(g *beaconv1.GenesisState) { g.Keys[0].Key = nil },
		"next":              func(g *beaconv1.GenesisState) { g.Keys[0].Next = []byte{1} },
		"nothing from 3":    func(g *beaconv1.GenesisState) { g.Keys[0].From = 3 },
		"two of an account": func(g *beaconv1.GenesisState) { g.Keys = append(g.Keys, g.Keys[0]) },
	} {
		g := genesis()
		if bend(g); beacon.ValidateGenesis(g) == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}

// keyOf returns the key with which the producer proves in the next block.
func keyOf(t *testing.T, c *chaintest.Chain) string {
	t.Helper()
	_, key, err := c.Beacon.KeyOf(c.Ctx().WithBlockHeight(c.LastBlockHeight()+1), c.Proposer())
	if err != nil {
		t.Fatal(err)
	}
	return string(key)
}

// A key that is changed counts from the epoch after the next, not a block earlier, and until
// then the old one does.
func TestAKeyCountsTwoEpochsLater(t *testing.T) {
	const length = 5
	c := chaintest.New(t, chaintest.Fund(1_000_000_000, producer.Name, alice.Name), func(g *app.Genesis) { g.Epoch = length })
	c.ProveWith(producer.VRF, alice.VRF)
	for c.LastBlockHeight() < 2*length-3 {
		c.NextBlock(time.Second)
	}
	b := c.Deliver(producer, &beaconv1.MsgSetKey{Account: producer.String(), Key: alice.VRFKey()})
	epoch := uint64(b.Height-1) / length
	if e := chaintest.Events[*beaconv1.EventKey](t, b); len(e) != 1 || e[0].From != epoch+2 {
		t.Fatalf("%v in epoch %d", e, epoch)
	}
	for range 3 * length {
		want := producer
		if uint64(c.LastBlockHeight())/length >= epoch+2 {
			want = alice
		}
		if h := uint64(c.LastBlockHeight()); h%length == 0 && h/length == epoch+1 {
			c.Refuse(beacon.ErrKey, producer, &beaconv1.MsgSetKey{Account: producer.String(), Key: producer.VRFKey()})
		}
		if keyOf(t, c) != string(want.VRFKey()) {
			t.Fatalf("block %d is not proved by the key of %s", c.LastBlockHeight()+1, want.Name)
		}
		c.Deliver(alice, banktypes.NewMsgSend(alice.Address, bob.Address, coin.Of(1)))
	}
	if keyOf(t, c) != string(alice.VRFKey()) {
		t.Fatal("the new key never counted")
	}
	fork := c.Fork() // what another chain goes on from has the same key
	if keyOf(t, fork) != string(alice.VRFKey()) {
		t.Fatal("the new key was lost with an export")
	}
}

func TestSetKeyIsForValidators(t *testing.T) {
	c := chaintest.New(t, chaintest.Fund(1_000_000_000, producer.Name, alice.Name))
	c.Refuse(beacon.ErrValidator, alice, &beaconv1.MsgSetKey{Account: alice.String(), Key: alice.VRFKey()})
	c.Refuse(beacon.ErrKey, producer, &beaconv1.MsgSetKey{Account: producer.String(), Key: make([]byte, 32)})
	c.Refuse(beacon.ErrKey, producer, &beaconv1.MsgSetKey{Account: producer.String(), Key: []byte("short")})
}

// A validator whose turns pass in a block that gave a value is counted, in the next one with a
// value; if the block gave none, nothing could be withheld, and an idle chain writes nothing.
func TestWithheldValuesAreCounted(t *testing.T) {
	c := chaintest.New(t, chaintest.Fund(1_000_000_000, alice.Name))
	pay := banktypes.NewMsgSend(alice.Address, bob.Address, coin.Of(1))
	counted := func() uint64 {
		g, err := c.Beacon.ExportGenesis(c.Ctx())
		if err != nil {
			t.Fatal(err)
		}
		return g.Keys[0].Withheld
	}
	c.Deliver(alice, pay)
	c.Failed = 2 // rounds of the block before
	b := c.Deliver(alice, pay)
	if n := counted(); n != 2 {
		t.Fatalf("%d turns without a value are counted, want 2", n)
	}
	if e := chaintest.Events[*beaconv1.EventWithheld](t, chaintest.Block{ResponseFinalizeBlock: &abci.ResponseFinalizeBlock{TxResults: []*abci.ExecTxResult{b.Proof}}}); len(e) != 2 || e[1].Withheld != 2 {
		t.Fatalf("events %v", e)
	}
	c.Failed = 0
	c.NextBlock(time.Second)
	c.Failed = 3 // of the idle block
	if c.Deliver(alice, pay); counted() != 2 {
		t.Fatalf("%d turns are counted after an idle block", counted())
	}
	c.Failed = 1_000
	if c.Deliver(alice, pay); counted() != 2+16 {
		t.Fatalf("%d turns are counted after a thousand failed rounds", counted())
	}
}
