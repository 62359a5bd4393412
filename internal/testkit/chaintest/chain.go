// Package chaintest runs the chain's application in a test, without consensus:
// the test makes the blocks and sets their times.
//
//	c := chaintest.New(t, chaintest.Fund(1_000_000, "alice", "bob"))
//	alice := chaintest.Named("alice")
//	c.Deliver(alice, msg)          // a block with one transaction
//	c.NextBlock(5 * time.Second)   // an empty one, five seconds later
//
// Each block begins with the proof of the beacon's value, if it needs one. Its result is not
// among those of a Block.
//
// A sponsor pays the fees of all accounts that the genesis names, so balances show
// what modules moved. QueueWithFee lets the sender pay.
//
// After every block the invariants of all modules are checked, unless the chain is Unchecked. What was executed is
// tried again, in a state that is thrown away: it must be refused, or change nothing.
package chaintest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"testing"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	dbm "github.com/cosmos/cosmos-db"
	"github.com/cosmos/gogoproto/proto"

	errorsmod "cosmossdk.io/errors"
	"cosmossdk.io/log/v2"

	"github.com/cosmos/cosmos-sdk/baseapp"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/event"
)

const (
	// ChainID is the chain id of every chain under test.
	ChainID = "tally-test"
	// Gas is the limit of each transaction.
	Gas = 2_000_000
)

// Chain is an application and the blocks that a test has made for it.
type Chain struct {
	*app.App
	Failed      int32              // rounds that the block before failed in, as the next block tells
	Signed      []abci.VoteInfo    // who has signed the block before, or not, as each block tells
	Misbehavior []abci.Misbehavior // that the next block tells of
	Comet       Comet              // tells all of this, if not nil
	Unchecked   bool               // blocks are not checked, nor tried again: whoever makes them checks some states

	t        testing.TB
	proposer []byte // consensus address
	height   int64
	time     time.Time
	hash     [32]byte
	queue    [][]byte
	queued   map[string]uint64 // transactions in the queue by account
	under    sdk.Context       // of the next block, if Do has begun it
	executed [][]sdk.Msg       // the newest, oldest first
	last     Block
	genesis  *abci.RequestInitChain
	record   *History // nil: blocks are not kept
}

// Comet is CometBFT around a chain's blocks: who proposes them, who has signed them, and who has signed twice.
type Comet interface {
	Before(c *Chain) // the next block: it may be asked twice
	After(b Block)
}

// Block is what a block did.
type Block struct {
	*abci.ResponseFinalizeBlock
	Request *abci.RequestFinalizeBlock
	Height  int64
	Time    time.Time
	Hash    [32]byte
	Proof   *abci.ExecTxResult // of the beacon's value; nil: the block has none
}

// New starts a chain whose genesis the options describe, at height 0.
func New(t testing.TB, options ...Option) *Chain {
	t.Helper()
	return Open(t, dbm.NewMemDB(), options...)
}

// Open is New over a database of the test's own.
func Open(t testing.TB, db dbm.DB, options ...Option) *Chain {
	t.Helper()
	g := NewGenesis(append(options, Fund(purse, sponsor.Name))...)
	a, err := app.New(log.NewNopLogger(), db, ChainID)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := g.Doc()
	if err != nil {
		t.Fatal(err)
	}
	if err := sponsorAll(a, g, doc); err != nil {
		t.Fatal(err)
	}
	params := doc.ConsensusParams.ToProto()
	genesis := &abci.RequestInitChain{
		ChainId: ChainID, Time: doc.GenesisTime, InitialHeight: 1, ConsensusParams: &params, AppStateBytes: doc.AppState,
	}
	if _, err := a.InitChain(genesis); err != nil {
		t.Fatal(err)
	}
	a.ProveWith(producer.VRF)
	c := &Chain{
		App: a, t: t, genesis: genesis, time: doc.GenesisTime, queued: map[string]uint64{},
		proposer: cmted25519.PubKey(g.Validators[0].ConsensusKey).Address(),
	}
	c.NextBlock(0) // so that there is a committed state to read
	return c
}

// Now returns the time of the last block.
func (c *Chain) Now() time.Time { return c.time }

// Proposer returns the consensus address of who proposes the blocks.
func (c *Chain) Proposer() []byte { return c.proposer }

// ProposedBy lets another propose the blocks from now on, by its consensus address.
func (c *Chain) ProposedBy(consensus []byte) { c.proposer = consensus }

// Ctx returns a context to read the state after the last block. Writes are lost.
func (c *Chain) Ctx() sdk.Context {
	ctx, _ := c.NewContextLegacy(true, c.header()).CacheContext()
	return ctx.WithHeaderHash(c.hash[:])
}

func (c *Chain) header() cmtproto.Header {
	return cmtproto.Header{ChainID: ChainID, Height: c.height, Time: c.time, ProposerAddress: c.proposer}
}

// Balance returns the free utally of an account.
func (c *Chain) Balance(a sdk.AccAddress) uint64 {
	return coin.Amount(c.Bank.GetAllBalances(c.Ctx(), a))
}

// Queue puts a transaction of msgs, signed by from, into the next block. The
// sponsor pays its fee, or from if genesis does not name it.
func (c *Chain) Queue(from Account, msgs ...sdk.Msg) {
	c.t.Helper()
	var payer sdk.AccAddress
	if _, err := c.Grants.GetAllowance(c.Ctx(), sponsor.Address, from.Address); err == nil {
		payer = sponsor.Address
	}
	c.put([]Account{from}, payer, c.Fee(), msgs)
}

// QueueOf is Queue for messages that several accounts must sign; the first pays.
func (c *Chain) QueueOf(signers []Account, msgs ...sdk.Msg) {
	c.t.Helper()
	c.put(signers, nil, c.Fee(), msgs)
}

// QueueWithFee is Queue with a fee in utally, which from pays.
func (c *Chain) QueueWithFee(from Account, fee uint64, msgs ...sdk.Msg) {
	c.t.Helper()
	c.put([]Account{from}, nil, fee, msgs)
}

// Fee returns the utally that a transaction pays at least.
func (c *Chain) Fee() uint64 {
	c.t.Helper()
	p, err := c.Block.Params(c.Ctx())
	if err != nil {
		c.t.Fatal(err)
	}
	return coin.Fee(p.GasPrice, Gas)
}

func (c *Chain) put(from []Account, payer sdk.AccAddress, fee uint64, msgs []sdk.Msg) {
	c.t.Helper()
	signers := make([]app.Signer, len(from))
	for i, a := range from {
		acc := c.Accounts.GetAccount(c.Ctx(), a.Address)
		if acc == nil {
			c.t.Fatalf("%s has no account: fund it at genesis", a.Name)
		}
		signers[i] = app.Signer{ChainID: ChainID, Key: a.Key, Number: acc.GetAccountNumber(), Sequence: acc.GetSequence() + c.queued[a.Name]}
		c.queued[a.Name]++
	}
	signers[0].Sponsor, signers[0].Beside = payer, signers[1:]
	tx, err := c.Sign(signers[0], Gas, fee, msgs...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.queue = append(c.queue, tx)
}

// NextBlock makes a block of the queue, d after the last, and checks all
// invariants.
func (c *Chain) NextBlock(d time.Duration) Block {
	c.t.Helper()
	c.ask()
	c.height++
	c.time = c.time.Add(d)
	h := sha256.New()
	h.Write(c.hash[:])
	_ = binary.Write(h, binary.LittleEndian, c.time.UnixNano())
	for _, tx := range c.queue {
		h.Write(tx)
	}
	h.Sum(c.hash[:0])
	txs := c.begun()
	req := &abci.RequestFinalizeBlock{
		Height: c.height, Time: c.time, Hash: bytes.Clone(c.hash[:]), ProposerAddress: c.proposer, Txs: txs,
		DecidedLastCommit: abci.CommitInfo{Round: c.Failed, Votes: c.Signed}, Misbehavior: c.Misbehavior,
	}
	res, err := c.FinalizeBlock(req)
	c.Misbehavior = nil
	if err != nil {
		c.t.Fatalf("height %d: %v", c.height, err)
	}
	var proof *abci.ExecTxResult
	if len(txs) > 0 && c.Proves(txs[0]) {
		proof, res.TxResults, txs = res.TxResults[0], res.TxResults[1:], txs[1:]
		if proof.Code != 0 {
			c.t.Fatalf("height %d: the proof of the beacon's value: %s", c.height, proof.Log)
		}
	}
	if _, err := c.Commit(); err != nil {
		c.t.Fatalf("height %d: %v", c.height, err)
	}
	c.queue = nil
	clear(c.queued)
	if !c.Unchecked {
		c.tryAgain(txs, func(i int) bool { return res.TxResults[i].Code == 0 })
		if err := c.CheckInvariants(c.Ctx()); err != nil {
			c.t.Fatalf("height %d: %v", c.height, err)
		}
	}
	c.last = Block{res, req, c.height, c.time, c.hash, proof}
	if c.record != nil {
		c.record.Blocks = append(c.record.Blocks, c.last)
	}
	if c.Comet != nil {
		c.Comet.After(c.last)
	}
	return c.last
}

// ask has Comet tell of the next block.
func (c *Chain) ask() {
	if c.Comet != nil {
		c.Comet.Before(c)
	}
}

// Height returns that of the last block.
func (c *Chain) Height() int64 { return c.height }

// Last returns what the last block did.
func (c *Chain) Last() Block { return c.last }

// begun returns the transactions of the next block: those of the queue, and before them the proof
// that they need.
func (c *Chain) begun() [][]byte {
	if c.height == 1 || len(c.queue) > 0 && c.Proves(c.queue[0]) { // as a proposer made it
		return c.queue
	}
	ctx := c.under
	if c.under = (sdk.Context{}); ctx.IsZero() {
		ctx = c.NewNextBlockContext(c.header())
	}
	txs, err := c.Begun(ctx, c.queue)
	if err != nil {
		c.t.Fatalf("height %d: %v", c.height, err)
	}
	return txs
}

// TakeQueue returns the queued transactions, which are then in no queue.
func (c *Chain) TakeQueue() [][]byte {
	txs := c.queue
	c.queue = nil
	clear(c.queued)
	return txs
}

// NextBlockOf makes a block, a second after the last, of transactions as they are.
func (c *Chain) NextBlockOf(txs ...[]byte) Block {
	c.t.Helper()
	c.queue = append(c.queue, txs...)
	return c.NextBlock(time.Second)
}

// Deliver makes a block, a second after the last, of one transaction that must
// succeed.
func (c *Chain) Deliver(from Account, msgs ...sdk.Msg) Block {
	c.t.Helper()
	c.Queue(from, msgs...)
	b := c.NextBlock(time.Second)
	if r := b.TxResults[len(b.TxResults)-1]; r.Code != 0 {
		c.t.Fatalf("height %d: transaction of %s fails: %s", c.height, from.Name, r.Log)
	}
	return b
}

// Refuse makes a block, a second after the last, of one transaction that must
// fail with the registered error want. It returns the words of the failure.
func (c *Chain) Refuse(want *errorsmod.Error, from Account, msgs ...sdk.Msg) string {
	c.t.Helper()
	c.Queue(from, msgs...)
	b := c.NextBlock(time.Second)
	r := b.TxResults[len(b.TxResults)-1]
	if r.Code != want.ABCICode() || r.Codespace != want.Codespace() {
		c.t.Fatalf("height %d: transaction of %s ends with %q, want %q", c.height, from.Name, r.Log, want)
	}
	return r.Log
}

// Do calls f with a context that writes to the state, as a module would, and
// makes a block of it. If f fails nothing is written.
func (c *Chain) Do(f func(sdk.Context) error) error {
	c.t.Helper()
	if len(c.queue) > 0 {
		c.t.Fatal("make a block of the queue first")
	}
	c.ask()
	h := c.header()
	h.Height++
	c.under = c.NewNextBlockContext(h)
	ctx, write := c.under.WithHeaderHash(c.hash[:]).CacheContext()
	err := f(ctx)
	if err == nil {
		write()
	}
	c.NextBlock(0)
	return err
}

// Events returns the events of type M of a block, those of its transactions
// first.
func Events[M proto.Message](t testing.TB, b Block) []M {
	t.Helper()
	var all []M
	for _, r := range b.TxResults {
		found, err := event.Of[M](r.Events)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	found, err := event.Of[M](b.Events)
	if err != nil {
		t.Fatal(err)
	}
	return append(all, found...)
}

// Restart opens the application anew over the same database, as after a crash
// between two blocks.
func (c *Chain) Restart(db dbm.DB) {
	c.t.Helper()
	c.RestartAs(app.Upgrades, db)
}

// RestartAs is Restart by a version of the software that has other upgrades.
func (c *Chain) RestartAs(known []app.Upgrade, db dbm.DB, opts ...func(*baseapp.BaseApp)) {
	c.t.Helper()
	a, err := app.NewWith(known, log.NewNopLogger(), db, ChainID, opts...)
	if err != nil {
		c.t.Fatal(err)
	}
	if a.LastBlockHeight() != c.height {
		c.t.Fatalf("restarts at height %d, want %d", a.LastBlockHeight(), c.height)
	}
	a.ProveWith(producer.VRF)
	c.App = a
}
