package client_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	cmttypes "github.com/cometbft/cometbft/types"

	errorsmod "cosmossdk.io/errors"

	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/x/provider"
	beaconv1 "github.com/tally-network/tally/gen/tally/beacon/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/consensus"
)

var alice, bob = chaintest.Named("alice"), chaintest.Named("bob")

// chain is one node of a chain, on which alice has money, and a way to it that
// forgets transactions.
type chain struct {
	*client.Client
	t       testing.TB
	config  consensus.Config
	node    *consensus.Node
	at      client.Endpoints // of the way
	forget  atomic.Bool      // says that it took what comes, and forgets it
	forgot  atomic.Int32     // how many
	starve  atomic.Int32     // says of so many that come that they have too little gas
	arrived atomic.Int32     // at the node, with those that came again
	refuse  atomic.Pointer[func(cmttypes.Tx) *errorsmod.Error]
}

// newChain starts a chain that pauses after each block.
func newChain(t testing.TB, pause time.Duration, more ...chaintest.Option) *chain {
	t.Helper()
	c := &chain{t: t, config: consensus.Config{Dir: t.TempDir(), CommitTimeout: pause, EmptyInterval: pause}}
	var ports consensus.Ports // held until the node starts: others beside this test take some, too
	for _, a := range []*string{&c.config.Listen.P2P, &c.config.Listen.RPC, &c.config.Listen.GRPC} {
		var err error
		if *a, err = ports.Take(""); err != nil {
			t.Fatal(err)
		}
	}
	id, err := consensus.LoadIdentity(c.config.Dir)
	if err != nil {
		t.Fatal(err)
	}
	g := chaintest.NewGenesis(append(more, chaintest.Fund(1_000_000_000, alice.Name))...)
	g.Validators = []app.Validator{{Account: chaintest.Named("v").String(), ConsensusKey: id.ConsensusKey, Votes: 1}}
	g.Keys = []beaconv1.Key{{Account: chaintest.Named("v").String(), Key: chaintest.Named("v").VRFKey()}}
	c.config.Provers = []ed25519.PrivateKey{chaintest.Named("v").VRF}
	g.Time = time.Now()
	if c.config.Genesis, err = g.Doc(); err != nil {
		t.Fatal(err)
	}
	if err := ports.Close(); err != nil {
		t.Fatal(err)
	}
	c.start()
	t.Cleanup(func() { c.stop() })
	node, err := url.Parse("http://" + c.config.Listen.RPC)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(c.through(httputil.NewSingleHostReverseProxy(node)))
	t.Cleanup(proxy.Close)
	c.at = client.Endpoints{RPC: proxy.URL, GRPC: c.config.Listen.GRPC}
	if c.Client, err = client.Dial(t.Context(), c.at); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Client.Close() })
	return c
}

func (c *chain) start() {
	c.t.Helper()
	var err error
	if c.node, err = consensus.Start(context.Background(), c.config); err != nil {
		c.t.Fatal(err)
	}
}

func (c *chain) stop() {
	if err := c.node.Stop(); err != nil {
		c.t.Error(err)
	}
}

func (c *chain) through(node http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		var call struct {
			ID     json.RawMessage
			Method string
			Params struct{ Tx cmttypes.Tx }
		}
		if json.Unmarshal(body, &call) != nil || call.Method != "broadcast_tx_sync" {
			node.ServeHTTP(w, r)
			return
		}
		code, codespace := abci.CodeTypeOK, ""
		var refusal *errorsmod.Error
		if refuse := c.refuse.Load(); refuse != nil {
			refusal = (*refuse)(call.Params.Tx)
		}
		switch {
		case refusal != nil:
			code, codespace = refusal.ABCICode(), refusal.Codespace()
		case c.forget.Load():
			defer c.forgot.Add(1)
		case c.starve.Add(-1) >= 0:
			code, codespace = sdkerrors.ErrOutOfGas.ABCICode(), sdkerrors.RootCodespace
		default:
			c.arrived.Add(1)
			node.ServeHTTP(w, r)
			return
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"code":%d,"codespace":%q,"hash":"%X"}}`, call.ID, code, codespace, call.Params.Tx.Hash())
	})
}

// single is an account of alice whose messages each have a transaction of their own.
func (c *chain) single() *client.Account {
	account := c.Account(alice.Key)
	account.Messages = 1
	return account
}

// pay is a message of alice. The amount tells it from others.
func pay(amount uint64) sdk.Msg {
	return banktypes.NewMsgSend(alice.Address, bob.Address, coin.Of(amount))
}

// received returns what bob has.
func (c *chain) received() uint64 { return c.balance(bob.String()) }

// together sends so many payments of 1 utally at once, and returns what became of each.
func together(ctx context.Context, account *client.Account, n int) ([]client.Result, []error) {
	results, errs := make([]client.Result, n), make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { results[i], errs[i] = account.Send(ctx, pay(1)) })
	}
	group.Wait()
	return results, errs
}

// rememberAfter lets transactions through once so many were forgotten.
func (c *chain) rememberAfter(n int32, then ...func()) {
	for c.forgot.Load() < n && c.t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
	for _, f := range then {
		f()
	}
	c.forget.Store(false)
}

func until(t *testing.T, what string, reached func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !reached(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after a minute: no %s", what)
		}
	}
}

// What an account sends at once shares blocks: it was one message a block.
func TestMessagesShareBlocks(t *testing.T) {
	t.Parallel()
	c := newChain(t, time.Second) // so that even a busy machine hands over several between two blocks
	account := c.single()
	for _, x := range []struct{ messages, blocks int }{{8, 4}, {32, 16}} {
		before := c.received()
		results, errs := together(t.Context(), account, x.messages)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		heights := map[int64]bool{}
		for _, r := range results {
			heights[r.Height] = true
		}
		t.Logf("%d messages in %d blocks", x.messages, len(heights))
		if len(heights) > x.blocks {
			t.Errorf("%d messages took %d blocks, want %d at most", x.messages, len(heights), x.blocks)
		}
		if got := c.received() - before; got != uint64(x.messages) {
			t.Errorf("%d messages were executed %d times", x.messages, got)
		}
	}
}

// A node that takes transactions and loses them gets them again, in order.
func TestLostTransactionsAreHandedOverAgain(t *testing.T) {
	t.Parallel()
	c := newChain(t, 400*time.Millisecond)
	account := c.single()
	c.forget.Store(true)
	go c.rememberAfter(4)
	_, errs := together(t.Context(), account, 8)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if got := c.received(); got != 8 {
		t.Fatalf("8 messages were executed %d times", got)
	}
}

// A node drops what would fail since the last block, and all behind it. Its sender learns why,
// and the others' messages are executed once each.
func TestOneThatFailsLetsOthersPass(t *testing.T) {
	t.Parallel()
	c := newChain(t, 400*time.Millisecond)
	account := c.single()
	c.forget.Store(true)
	failed := make(chan error)
	go func() {
		_, err := account.Send(t.Context(), &workv1.MsgReady{Provider: alice.String(), Order: strings.Repeat("0", 64)})
		failed <- err
	}()
	until(t, "transaction", func() bool { return c.forgot.Load() == 1 })
	go c.rememberAfter(5)
	_, errs := together(t.Context(), account, 4)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, provider.ErrNotRegistered) {
		t.Fatalf("what fails: %v", err)
	}
	if got := c.received(); got != 4 {
		t.Fatalf("4 messages were executed %d times", got)
	}
	if _, err := account.Send(t.Context(), pay(1)); err != nil {
		t.Fatal(err)
	}
}

// One that needs more gas by now is signed anew, but only when its sequence has been used: else
// it could be executed twice.
func TestSignedAnewOnlyWhenItsSequenceIsUsed(t *testing.T) {
	t.Parallel()
	c := newChain(t, 400*time.Millisecond)
	account := c.single()
	c.forget.Store(true)
	go c.rememberAfter(2, func() { c.starve.Store(1) })
	_, errs := together(t.Context(), account, 2)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if got := c.received(); got != 2 {
		t.Fatalf("2 messages were executed %d times", got)
	}
	r, err := authtypes.NewQueryClient(c.Conn).AccountInfo(t.Context(), &authtypes.QueryAccountInfoRequest{Address: alice.String()})
	if err != nil || r.Info.Sequence != 3 {
		t.Fatalf("want three transactions, one of them in the place of what was signed anew: %v, %v", r, err)
	}
}

// Who has no money for what takes the place of a failure learns at once that its messages were
// given up, and that they may still be executed.
func TestNoMoneyToTakeAPlace(t *testing.T) {
	t.Parallel()
	c := newChain(t, 400*time.Millisecond)
	poor := c.Account(secp256k1.GenPrivKey())
	fund := &banktypes.MsgSend{FromAddress: alice.String(), ToAddress: poor.Address, Amount: coin.Of(1)}
	if _, err := c.Account(alice.Key).Send(t.Context(), fund); err != nil {
		t.Fatal(err)
	}
	c.forget.Store(true)
	go c.rememberAfter(2)
	m := &banktypes.MsgSend{FromAddress: poor.Address, ToAddress: bob.String(), Amount: coin.Of(1)}
	errs := make(chan error)
	for range 2 {
		go func() {
			_, err := poor.Send(t.Context(), m)
			errs <- err
		}()
	}
	for range 2 {
		if err := <-errs; !givenUp(err) || errors.Is(err, sdkerrors.ErrInsufficientFunds) {
			t.Fatal(err)
		}
	}
}

func givenUp(err error) bool {
	return err != nil && strings.Contains(err.Error(), "may still be executed")
}

// Who gives up in the middle keeps nobody else from sending, and is executed once at most.
func TestSendersGiveUp(t *testing.T) {
	t.Parallel()
	c := newChain(t, 400*time.Millisecond)
	account := c.single()
	impatient, cancel := context.WithCancel(t.Context())
	c.forget.Store(true)
	gone := make(chan error)
	for range 2 {
		go func() {
			_, err := account.Send(impatient, pay(100))
			gone <- err
		}()
	}
	until(t, "transactions", func() bool { return c.forgot.Load() == 2 })
	go c.rememberAfter(6, cancel)
	_, errs := together(t.Context(), account, 4)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if got := c.received(); got%100 != 4 || got > 204 {
		t.Fatalf("bob has %d", got)
	}
	if _, err := account.Send(t.Context(), pay(1)); err != nil {
		t.Fatal(err)
	}
}

// A node that restarts has lost its mempool.
func TestRestartsLoseNothing(t *testing.T) {
	t.Parallel()
	c := newChain(t, 400*time.Millisecond)
	account := c.single()
	go func() {
		for c.arrived.Load() < 6 && t.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
		c.stop()
		c.start()
	}()
	_, errs := together(t.Context(), account, 16)
	failed := 0
	for _, err := range errs {
		if err != nil { // those that could not be handed over
			failed++
		}
	}
	t.Logf("%d could not be handed over", failed)
	if got := int(c.received()); got < 16-failed || got > 16 || got == 0 {
		t.Fatalf("%d of 16 messages failed, and %d were executed", failed, got)
	}
	if _, err := account.Send(t.Context(), pay(1)); err != nil {
		t.Fatal(err)
	}
}

// Another process may have the same key. Each takes sequences that the other had in mind.
func TestTwoProcessesWithOneKey(t *testing.T) {
	t.Parallel()
	c := newChain(t, 400*time.Millisecond)
	var group sync.WaitGroup
	for _, amount := range []uint64{1, 100} { // the same would be one transaction
		account := c.single()
		for range 4 {
			group.Go(func() {
				if _, err := account.Send(t.Context(), pay(amount)); err != nil {
					t.Error(err)
				}
			})
		}
	}
	group.Wait()
	if got := c.received(); got != 404 {
		t.Fatalf("bob has %d utally of four payments of 1 and four of 100", got)
	}
}

// A person may use an account's key while the account's role works. All the room that the node
// has for the account is the role's then, and it once refused the person at once.
func TestPersonBesideARole(t *testing.T) {
	t.Parallel()
	c := newChain(t, 400*time.Millisecond)
	role, person := c.single(), c.single()
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range 24 {
		group.Go(func() {
			for ctx.Err() == nil {
				if _, err := role.Send(ctx, pay(1)); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	until(t, "full mempool", func() bool { return c.arrived.Load() >= 16 })
	for range 3 {
		if _, err := person.Send(t.Context(), pay(1_000)); err != nil {
			t.Error(err)
		}
	}
	stop()
	group.Wait()
	if got := c.received(); got/1_000 != 3 {
		t.Errorf("bob has %d utally of three payments of 1000 and some of 1", got)
	}
}

// The log of a refusal ends with the module's own words, which are said once.
func TestRefusalsSayItOnce(t *testing.T) {
	e := sdkerrors.ErrInsufficientFunds
	for log, want := range map[string]string{
		"1utally is smaller than 5utally: insufficient funds": "1utally is smaller than 5utally: insufficient funds",
		"1utally is smaller than 5utally":                     "1utally is smaller than 5utally: insufficient funds",
	} {
		if err := client.Refusal(e.Codespace(), e.ABCICode(), log); err.Error() != want || !errors.Is(err, e) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := client.Refusal("nobody", 77, "what nobody knows"); !strings.Contains(err.Error(), "what nobody knows") {
		t.Error(err)
	}
}

// A node drops a transaction that another in its mempool lets fail, and says so when it comes again.
// A node with another order may still execute it, so that refusal is not the end.
func TestRefusedByOneNodeAndExecutedByAnother(t *testing.T) {
	t.Parallel()
	c := newChain(t, 400*time.Millisecond)
	var came sync.Map
	refuse := func(tx cmttypes.Tx) *errorsmod.Error {
		if _, again := came.LoadOrStore(string(tx), true); again {
			return sdkerrors.ErrInsufficientFunds
		}
		return nil
	}
	c.refuse.Store(&refuse)
	account := c.single()
	for range 4 {
		before := c.received()
		_, err := account.Send(t.Context(), pay(100))
		if got := c.received() - before; err != nil || got != 100 {
			t.Fatalf("bob has %d utally more: %v", got, err)
		}
	}
}

// While general transactions fill a node's mempool, it takes moves alone, and no replacement of one
// that fails. Those behind it are given up then, and the account's next moves are executed. The
// payments here stand for moves; general is what alice sends herself.
func TestMovesPassWhileNothingCanReplaceAFailure(t *testing.T) {
	t.Parallel()
	c := newChain(t, 400*time.Millisecond)
	account := c.single()
	refuse := func(tx cmttypes.Tx) *errorsmod.Error {
		if strings.Count(string(tx), alice.String()) == 2 {
			return sdkerrors.ErrMempoolIsFull
		}
		return nil
	}
	c.refuse.Store(&refuse)
	c.forget.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // less than a sender's patience
	defer cancel()
	send := func(m sdk.Msg) chan error {
		sent := make(chan error, 1)
		go func() { _, err := account.Send(ctx, m); sent <- err }()
		return sent
	}
	fails := send(&workv1.MsgReady{Provider: alice.String(), Order: strings.Repeat("0", 64)})
	until(t, "transaction", func() bool { return c.forgot.Load() == 1 })
	behind := send(pay(100))
	until(t, "transactions", func() bool { return c.forgot.Load() >= 2 })
	c.forget.Store(false)
	late := send(pay(101)) // has a gap before it
	if err := <-fails; !givenUp(err) || !strings.Contains(err.Error(), provider.ErrNotRegistered.Error()) {
		t.Errorf("what fails: %v", err)
	}
	if err := <-behind; !givenUp(err) {
		t.Errorf("what was behind it: %v", err)
	}
	if err := <-late; err != nil {
		t.Errorf("what was sent meanwhile: %v", err)
	}
	if _, err := account.Send(ctx, pay(100)); err != nil {
		t.Errorf("what was behind it, sent again: %v", err)
	}
	if got := c.received(); got != 201 {
		t.Errorf("bob has %d utally, want 201", got)
	}
}
