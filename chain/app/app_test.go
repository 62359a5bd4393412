package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	dbm "github.com/cosmos/cosmos-db"

	"cosmossdk.io/log/v2"

	sdk "github.com/cosmos/cosmos-sdk/types"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/x/dispute"
	"github.com/tally-network/tally/chain/x/market"
	"github.com/tally-network/tally/chain/x/provider"
	"github.com/tally-network/tally/chain/x/supply"
	"github.com/tally-network/tally/chain/x/work"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	supplyv1 "github.com/tally-network/tally/gen/tally/supply/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

const tally = 1_000_000

func network() []chaintest.Option {
	return []chaintest.Option{
		chaintest.Fund(5_000*tally, "alice", "bob"),
		chaintest.Validator("lead", 1_000*tally),
		chaintest.Provider("p1", "lead", 100*tally, 3),
		chaintest.Provider("p2", "lead", 200*tally, 4),
		chaintest.Challenger("w", 100*tally),
	}
}

func send(from, to chaintest.Account, amount uint64) sdk.Msg {
	return banktypes.NewMsgSend(from.Address, to.Address, coin.Of(amount))
}

// An idle chain must not change its app hash, or consensus would make a block
// to prove every block.
func TestEmptyBlocksChangeNothing(t *testing.T) {
	c := chaintest.New(t, network()...)
	alice, bob := chaintest.Named("alice"), chaintest.Named("bob")
	last := c.NextBlock(time.Second).AppHash
	for range 3 {
		for range 5 {
			b := c.NextBlock(10 * time.Minute)
			if !bytes.Equal(b.AppHash, last) {
				t.Fatalf("height %d: an empty block changed the app hash", b.Height)
			}
		}
		b := c.Deliver(alice, send(alice, bob, 5))
		if bytes.Equal(b.AppHash, last) {
			t.Fatal("a transaction left the app hash as it was")
		}
		last = b.AppHash
	}
}

func TestSameBlocksSameHashes(t *testing.T) {
	run := func() [][]byte {
		c := chaintest.New(t, network()...)
		var hashes [][]byte
		alice, bob := chaintest.Named("alice"), chaintest.Named("bob")
		for i := range uint64(4) {
			c.QueueWithFee(alice, c.Fee()+10, send(alice, bob, i+1))
			c.Queue(bob, bob.Register(providerv1.ROLE_PROVIDER, 150*tally, providerv1.Listing{Validator: chaintest.Named("lead").String()}))
			hashes = append(hashes, c.NextBlock(time.Second).AppHash)
		}
		return hashes
	}
	a, b := run(), run()
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			t.Fatalf("block %d differs between two runs", i)
		}
	}
}

func TestRestartKeepsState(t *testing.T) {
	db := dbm.NewMemDB()
	c := chaintest.Open(t, db, network()...)
	alice, bob := chaintest.Named("alice"), chaintest.Named("bob")
	want := c.Deliver(alice, send(alice, bob, 7)).AppHash
	c.Restart(db)
	if got := c.LastCommitID().Hash; !bytes.Equal(got, want) {
		t.Fatalf("app hash %X after restart, want %X", got, want)
	}
	if got := c.NextBlock(time.Second).AppHash; !bytes.Equal(got, want) {
		t.Fatal("an empty block after restart changed the app hash")
	}
	c.Deliver(bob, send(bob, alice, 1))
}

// Nobody gets the fees: not even a proposer fills blocks for nothing.
func TestFeesAreBurnt(t *testing.T) {
	c := chaintest.New(t, network()...)
	alice, bob := chaintest.Named("alice"), chaintest.Named("bob")
	before, err := c.Supply.Burnt(c.Ctx())
	if err != nil {
		t.Fatal(err)
	}
	c.QueueWithFee(alice, c.Fee()+30, send(alice, bob, 1))
	c.QueueWithFee(alice, c.Fee(), send(alice, bob, 10_000*tally)) // fails, and still pays
	b := c.NextBlock(time.Second)
	if b.TxResults[0].Code != 0 || b.TxResults[1].Code == 0 {
		t.Fatal(b.TxResults)
	}
	paid := 2*c.Fee() + 30
	if got := c.Balance(alice.Address); got != 5_000*tally-1-paid {
		t.Fatalf("alice has %d utally", got)
	}
	if burnt, err := c.Supply.Burnt(c.Ctx()); err != nil || burnt != before+paid {
		t.Fatalf("%d utally are burnt, want %d: %v", burnt-before, paid, err)
	}
	if left := c.Balance(authtypes.NewModuleAddress(authtypes.FeeCollectorName)); left != 0 {
		t.Fatalf("%d utally of fees are left", left)
	}
}

func TestBurn(t *testing.T) {
	c := chaintest.New(t, network()...)
	q := supplyv1.NewQueryClient(c)
	before, _ := q.Supply(context.Background(), &supplyv1.QuerySupplyRequest{})
	p1 := chaintest.Named("p1").Address
	for _, do := range []func(sdk.Context) error{
		func(ctx sdk.Context) error { return c.Provider.Slash(ctx, p1, 0, 50*tally, nil) },
		func(ctx sdk.Context) error { return c.Supply.Burn(ctx, provider.Insurance, 20*tally) },
	} {
		if err := c.Do(do); err != nil {
			t.Fatal(err)
		}
		c.NextBlock(time.Second)
	}
	after, err := q.Supply(context.Background(), &supplyv1.QuerySupplyRequest{})
	if err != nil || after.Burnt != 20*tally || after.Minted != before.Minted || after.Supply != before.Supply-20*tally {
		t.Fatalf("%+v, %v", after, err)
	}
	if err := c.Do(func(ctx sdk.Context) error { return c.Supply.Burn(ctx, provider.Insurance, 31*tally) }); err == nil {
		t.Fatal("more was burnt than the account holds")
	}
	check, err := q.Check(context.Background(), &supplyv1.QueryCheckRequest{})
	if err != nil || !check.Ok || check.Fault != "" {
		t.Fatalf("%+v, %v", check, err)
	}
}

// Every way in which money could go astray must break an invariant.
func TestInvariantsSeeFaults(t *testing.T) {
	c := chaintest.New(t, network()...)
	alice := chaintest.Named("alice").Address
	for name, fault := range map[string]func(sdk.Context) error{
		"stake leaves the ledger's account": func(ctx sdk.Context) error {
			return c.Bank.SendCoinsFromModuleToAccount(ctx, provider.Name, alice, coin.Of(1))
		},
		"money enters it": func(ctx sdk.Context) error {
			return c.Bank.SendCoinsFromAccountToModule(ctx, alice, provider.Name, coin.Of(1))
		},
		"burnt outside the count": func(ctx sdk.Context) error {
			if err := c.Bank.SendCoinsFromAccountToModule(ctx, alice, supply.Name, coin.Of(1)); err != nil {
				return err
			}
			return c.Bank.BurnCoins(ctx, supply.Name, coin.Of(1))
		},
		"a balance from nothing": func(ctx sdk.Context) error {
			return c.Bank.UncheckedSetBalance(ctx, alice, sdk.NewInt64Coin(coin.Denom, 1))
		},
	} {
		ctx := c.Ctx()
		if err := fault(ctx); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := c.CheckInvariants(ctx); err == nil {
			t.Errorf("%s: no invariant is broken", name)
		}
	}
}

func TestModuleAccountsTakeNoTransfers(t *testing.T) {
	c := chaintest.New(t, network()...)
	alice := chaintest.Named("alice")
	for _, name := range []string{provider.Name, provider.Insurance, supply.Name, market.Name, work.Name, dispute.Name, authtypes.FeeCollectorName} {
		c.Queue(alice, banktypes.NewMsgSend(alice.Address, authtypes.NewModuleAddress(name), coin.Of(1)))
		if r := c.NextBlock(time.Second).TxResults[0]; r.Code == 0 {
			t.Errorf("%s took a transfer", name)
		}
	}
}

func TestExportImport(t *testing.T) {
	c := chaintest.New(t, network()...)
	alice, bob, p1 := chaintest.Named("alice"), chaintest.Named("bob"), chaintest.Named("p1")
	c.Deliver(alice, send(alice, bob, 9))
	if err := c.Do(func(ctx sdk.Context) error {
		return firstOf(
			c.Provider.Slash(ctx, p1.Address, 0, 15*tally, []providerv1.Payout{{Account: bob.String(), Amount: tally}}),
			c.Provider.Jail(ctx, p1.Address, 77),
			c.Power.Credit(ctx, p1.Address, 1e12),
		)
	}); err != nil {
		t.Fatal(err)
	}
	c.NextBlock(time.Second)
	if err := c.Do(func(ctx sdk.Context) error { return c.Supply.Burn(ctx, provider.Insurance, 3*tally) }); err != nil {
		t.Fatal(err)
	}
	state, err := c.Export(c.Ctx())
	if err != nil {
		t.Fatal(err)
	}
	again := start(t, state, c.Now())
	ctx := again.NewContext(false)
	if err := again.CheckInvariants(ctx); err != nil {
		t.Fatal(err)
	}
	back, err := again.Export(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(state, back) {
		t.Fatalf("export\n%s\nimported and exported\n%s", state, back)
	}
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func start(t *testing.T, state json.RawMessage, at time.Time) *app.App {
	t.Helper()
	a, err := app.New(log.NewNopLogger(), dbm.NewMemDB(), chaintest.ChainID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.InitChain(&abci.RequestInitChain{ChainId: chaintest.ChainID, Time: at, AppStateBytes: state}); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestGenesisRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		option chaintest.Option
		words  string
	}{
		"no validators":  {func(g *app.Genesis) { g.Validators = nil }, "nobody has votes"},
		"twice":          {chaintest.Fund(1, "alice"), "twice"},
		"bad address":    {func(g *app.Genesis) { g.Accounts[0].Address = "tally1x" }, "address"},
		"too much money": {chaintest.Fund(coin.MaxSupply, "carol"), "exceed"},
		"too much stake": {chaintest.Challenger("x", coin.MaxSupply-10_000*tally), "exceed"},
		"lost validator": {chaintest.Provider("x", "nobody", tally, 1), "no peer"},
		"peer twice":     {chaintest.Challenger("p1", tally), "unique"},
		"same key": {func(g *app.Genesis) {
			chaintest.Challenger("x", tally)(g)
			g.Peers[len(g.Peers)-1].PeerKey = g.Peers[0].PeerKey
		}, "unique"},
		"votes": {func(g *app.Genesis) { g.Validators[0].Votes = -1 }, "votes -1"},
		"key":   {func(g *app.Genesis) { g.Validators[0].ConsensusKey = make([]byte, 32) }, "consensus_key"},
	} {
		_, err := chaintest.NewGenesis(append(network(), c.option)...).Doc()
		if err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Contradictions that only show on import are errors too, not panics.
func TestInitChainRefuses(t *testing.T) {
	doc, err := chaintest.NewGenesis(network()...).Doc()
	if err != nil {
		t.Fatal(err)
	}
	for name, swap := range map[string][2]string{
		"not json":             {`{`, `[`},
		"unknown module":       {`"power":`, `"tower":`},
		"stake without money":  {`"stake":"100000000"`, `"stake":"100000001"`},
		"supply that is wrong": {`"supply":[]`, `"supply":[{"denom":"utally","amount":"5"}]`},
	} {
		bad := strings.Replace(string(doc.AppState), swap[0], swap[1], 1)
		if bad == string(doc.AppState) {
			t.Fatalf("%s: nothing to swap in %s", name, bad)
		}
		a, err := app.New(log.NewNopLogger(), dbm.NewMemDB(), chaintest.ChainID)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.InitChain(&abci.RequestInitChain{ChainId: chaintest.ChainID, AppStateBytes: []byte(bad)}); err == nil {
			t.Errorf("%s: the genesis was taken", name)
		}
	}
}

// Transactions come from anyone.
func FuzzTransaction(f *testing.F) {
	c := chaintest.New(f, network()...)
	alice := chaintest.Named("alice")
	tx, err := c.Sign(app.Signer{ChainID: chaintest.ChainID, Key: alice.Key}, chaintest.Gas, c.Fee(),
		alice.Register(providerv1.ROLE_CHALLENGER, tally, providerv1.Listing{Addrs: []string{"/ip4/127.0.0.1"}}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(tx)
	f.Fuzz(func(t *testing.T, tx []byte) {
		if res, err := c.CheckTx(&abci.RequestCheckTx{Tx: tx}); err == nil && res == nil {
			t.Fatal("neither a result nor an error")
		}
	})
}

// Whatever people do with their money and stakes, it adds up: every block of
// the harness checks all invariants.
func TestMoneyAddsUp(t *testing.T) {
	names := []string{"alice", "bob", "p1", "p2", "lead", "w"}
	for seed := range uint64(6) {
		c, r := chaintest.New(t, network()...), rand.New(rand.NewPCG(seed, 0))
		pick := func() chaintest.Account { return chaintest.Named(names[r.IntN(len(names))]) }
		amount := func() uint64 { return r.Uint64N(300 * tally) }
		for range 10 {
			for range r.IntN(4) {
				from := pick()
				messages := []sdk.Msg{
					send(from, pick(), amount()),
					&providerv1.MsgDeposit{Account: from.String(), Amount: amount()},
					&providerv1.MsgWithdraw{Account: from.String(), Amount: amount()},
					from.Register(providerv1.ROLE_CHALLENGER, amount(), providerv1.Listing{}),
				}
				c.QueueWithFee(from, c.Fee()+r.Uint64N(9), messages[r.IntN(len(messages))])
			}
			c.NextBlock(time.Second)
			who, part := pick(), amount()
			// Some of it is refused; then nothing may have moved.
			_ = c.Do(func(ctx sdk.Context) error {
				if r.IntN(3) == 0 {
					return c.Supply.Burn(ctx, provider.Insurance, part)
				}
				return c.Provider.Slash(ctx, who.Address, 0, part, []providerv1.Payout{{Account: who.String(), Amount: part / 2}})
			})
		}
	}
}
