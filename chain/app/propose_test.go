package app_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"

	"github.com/cosmos/cosmos-sdk/client"
	clienttx "github.com/cosmos/cosmos-sdk/client/tx"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
	"github.com/cosmos/cosmos-sdk/types/tx/signing"
	authsigning "github.com/cosmos/cosmos-sdk/x/auth/signing"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/core/job"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	sessionsv1 "github.com/tally-network/tally/gen/tally/sessions/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// spammers are as many accounts as it takes to fill a mempool with general
// transactions.
func spammers() (names []string) {
	for i := range 40 {
		names = append(names, fmt.Sprintf("spammer%d", i))
	}
	return names
}

// later signs the transaction that from can send after those that were checked.
func later(t *testing.T, c *chaintest.Chain, from chaintest.Account, gas uint64, m ...sdk.Msg) []byte {
	t.Helper()
	acc := c.Accounts.GetAccount(c.Ctx(), from.Address)
	tx, err := c.Sign(app.Signer{
		ChainID: chaintest.ChainID, Key: from.Key, Number: acc.GetAccountNumber(), Sequence: acc.GetSequence(),
	}, gas, coin.Fee(100, gas), m...)
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

func check(t *testing.T, c *chaintest.Chain, tx []byte) *abci.ResponseCheckTx {
	t.Helper()
	r, err := c.CheckTx(&abci.RequestCheckTx{Tx: tx})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// propose makes a block of what a proposer takes of its mempool, first come
// first reaped, as CometBFT does.
func propose(t *testing.T, c *chaintest.Chain, mempool [][]byte, gas uint64) chaintest.Block {
	t.Helper()
	reaped := mempool[:min(len(mempool), int(10*app.MaxGas/gas))]
	height, now := c.LastBlockHeight()+1, c.Now().Add(time.Second)
	r, err := c.PrepareProposal(&abci.RequestPrepareProposal{ProposerAddress: c.Proposer(), Height: height, Time: now, MaxTxBytes: 4 << 20, Txs: reaped})
	if err != nil {
		t.Fatal(err)
	}
	v, err := c.ProcessProposal(&abci.RequestProcessProposal{ProposerAddress: c.Proposer(), Height: height, Time: now, Txs: r.Txs})
	if err != nil || v.Status != abci.ResponseProcessProposal_ACCEPT {
		t.Fatalf("an honest proposal of %d transactions is refused: %v, %v", len(r.Txs), v, err)
	}
	return c.NextBlockOf(r.Txs...)
}

// While others fill all of the mempool that they may, a move gets into the next
// block, and is the first there.
func TestMovesLandWhileTheMempoolIsFull(t *testing.T) {
	c := chaintest.New(t, worktest.Network(chaintest.Fund(10*tally, spammers()...))...)
	p := worktest.Begin(t, c, worktest.Order())
	p.Assign(0, "p0")
	var mempool [][]byte
	for _, name := range spammers() {
		from := chaintest.Named(name)
		tx := later(t, c, from, app.MaxGas, send(from, from, 1))
		if r := check(t, c, tx); r.Code == 0 {
			mempool = append(mempool, tx)
		} else if r.Code != sdkerrors.ErrMempoolIsFull.ABCICode() {
			t.Fatal(r.Log)
		}
	}
	if n := len(mempool); n == 0 || n == len(spammers()) {
		t.Fatalf("%d of %d spammers got in", n, len(spammers()))
	}
	provider := chaintest.Named("p0")
	c.Queue(provider, p.SubmitMsg(p.Receipt(0)))
	move := c.TakeQueue()[0]
	if r := check(t, c, move); r.Code != 0 {
		t.Fatalf("a move is refused: %s", r.Log)
	}
	mempool = append(mempool, move)
	b := propose(t, c, mempool, app.MaxGas)
	if b.TxResults[0].Code != 0 || p.Unit(0).Status != workv1.UNIT_STATUS_RECEIVED {
		t.Fatalf("the unit is %v: %s", p.Unit(0).Status, b.TxResults[0].Log)
	}
	if n := len(b.TxResults); n < 5 || n > 8 {
		t.Errorf("%d transactions beside spam of %d: want the move and at most three quarters of the gas", n, len(mempool))
	}
}

// A challenger without a stake has a bond to lose by the clock: its moves get through like
// those of all parties, while its openings are like anybody's.
func TestMovesOfChallengersLandWhileTheMempoolIsFull(t *testing.T) {
	c := chaintest.New(t, worktest.Network(chaintest.Fund(10*tally, spammers()...))...)
	honest, cheat := worktest.NewTraining(t, nil), worktest.NewTraining(t, &worktest.Lie{Unit: 0, Step: 2, Element: 5})
	p := worktest.Begin(t, c, honest.Order())
	p.Computer = cheat
	p.Compute(0, "p0")
	defender, challenger := cheat.Unit(0, honest.Problem.Start), honest.Unit(0, honest.Problem.Start)
	open := p.OpenMsg(job.UnitTarget(0), 0, challenger)
	id := p.Dispute(job.UnitTarget(0), 0, challenger)
	for {
		who, m, err := p.MoveMsg(id, defender, challenger)
		if err != nil {
			t.Fatal(err)
		}
		if who.Name != worktest.Challenger.Name {
			p.Deliver(who, m)
			continue
		}
		for _, name := range spammers() {
			from := chaintest.Named(name)
			check(t, c, later(t, c, from, app.MaxGas, send(from, from, 1)))
		}
		c.Queue(who, open)
		if r := check(t, c, c.TakeQueue()[0]); r.Code != sdkerrors.ErrMempoolIsFull.ABCICode() || r.Codespace != sdkerrors.RootCodespace {
			t.Fatalf("the mempool is not full for a stranger's opening: %s", r.Log)
		}
		c.Queue(who, m)
		move := c.TakeQueue()[0]
		if r := check(t, c, move); r.Code != 0 {
			t.Fatalf("a challenger's move is refused: %s", r.Log)
		}
		if b := propose(t, c, [][]byte{move}, app.MaxGas); b.TxResults[0].Code != 0 {
			t.Fatalf("a challenger's move: %s", b.TxResults[0].Log)
		}
		return
	}
}

// Of transactions that fail, a node tries few between two blocks, through however many
// accounts they come. The others go into blocks untried, and pay there.
func TestFailuresOfManyAccountsPay(t *testing.T) {
	c := chaintest.New(t, append(network(), chaintest.Fund(10*tally, spammers()...))...)
	var mempool [][]byte
	for _, name := range spammers() {
		from := chaintest.Named(name)
		tx := later(t, c, from, app.MaxGas, send(from, from, 1), send(from, from, 100*tally))
		if check(t, c, tx).Code == 0 {
			mempool = append(mempool, tx)
		}
	}
	if tried := len(spammers()) - len(mempool); tried < 4 || len(mempool) < 10 {
		t.Fatalf("%d of %d failures are taken untried", len(mempool), len(spammers()))
	}
	paid := func() (n int) {
		for _, name := range spammers() {
			if c.Balance(chaintest.Named(name).Address) < 10*tally {
				n++
			}
		}
		return n
	}
	if b := propose(t, c, mempool, app.MaxGas); len(b.TxResults) == 0 || paid() != len(b.TxResults) {
		t.Fatalf("%d transactions in the block, %d have paid", len(b.TxResults), paid())
	}
}

// Moves of strangers have the same bound, for there is no end of strangers. A party's move
// is tried however many of theirs have failed, and comes before theirs in a block.
func TestFailedMovesOfManyStrangersPay(t *testing.T) {
	c := chaintest.New(t, worktest.Network(chaintest.Fund(10*tally, spammers()...))...)
	p := worktest.Begin(t, c, worktest.Order())
	p.Assign(0, "p0")
	bad := func(by chaintest.Account) sdk.Msg {
		return &workv1.MsgReady{Provider: by.String(), Order: p.ID.String()}
	}
	var mempool [][]byte
	tried := 0
	for _, name := range spammers() {
		from := chaintest.Named(name)
		tx := later(t, c, from, app.MaxGas, bad(from))
		switch r := check(t, c, tx); {
		case r.Code == 0:
			mempool = append(mempool, tx)
		case r.Codespace != sdkerrors.RootCodespace:
			tried++
		}
	}
	if tried != 4 || len(mempool) == 0 || len(mempool) > 20 {
		t.Fatalf("%d moves of strangers were tried, %d wait untried; want 4, and no more than there is room for general ones", tried, len(mempool))
	}
	v := chaintest.Named("v1")
	c.Queue(v, bad(v))
	if r := check(t, c, c.TakeQueue()[0]); r.Code == 0 || r.Codespace == sdkerrors.RootCodespace {
		t.Fatalf("a party's move is not tried: %+v", r)
	}
	c.Queue(chaintest.Named("p0"), p.SubmitMsg(p.Receipt(0)))
	move := c.TakeQueue()[0]
	if r := check(t, c, move); r.Code != 0 {
		t.Fatalf("a party's move is refused: %s", r.Log)
	}
	b := propose(t, c, append(mempool, move), app.MaxGas)
	if b.TxResults[0].Code != 0 || p.Unit(0).Status != workv1.UNIT_STATUS_RECEIVED {
		t.Fatalf("the unit is %v: %s", p.Unit(0).Status, b.TxResults[0].Log)
	}
	paid := 0
	for _, name := range spammers() {
		if c.Balance(chaintest.Named(name).Address) < 10*tally {
			paid++
		}
	}
	if paid != len(b.TxResults)-1 || paid == 0 {
		t.Errorf("%d strangers paid for %d failures in the block", paid, len(b.TxResults)-1)
	}
}

// One account, however rich, has a few transactions in the mempool at once.
func TestOneAccountDoesNotFillTheMempool(t *testing.T) {
	c := chaintest.New(t, network()...)
	alice, bob := chaintest.Named("alice"), chaintest.Named("bob")
	var mempool [][]byte
	for range 50 {
		if tx := later(t, c, alice, 100_000, send(alice, bob, 1)); check(t, c, tx).Code == 0 {
			mempool = append(mempool, tx)
		}
	}
	if len(mempool) != 8 {
		t.Fatalf("%d transactions of one account wait, want 8", len(mempool))
	}
	honest := later(t, c, bob, 100_000, send(bob, alice, 1))
	if r := check(t, c, honest); r.Code != 0 {
		t.Fatal(r.Log)
	}
	mempool = append(mempool, honest)
	height, now := c.LastBlockHeight()+1, c.Now().Add(time.Second)
	r, err := c.PrepareProposal(&abci.RequestPrepareProposal{ProposerAddress: c.Proposer(), Height: height, Time: now, MaxTxBytes: 4 << 20, Txs: mempool})
	if err != nil || len(r.Txs) != 10 || slices.IndexFunc(r.Txs, func(x []byte) bool { return bytes.Equal(x, honest) }) > 2 {
		t.Fatalf("%d transactions: those of one account come before another's first: %v", len(r.Txs), err)
	}
	c.NextBlockOf(r.Txs...)
	if r := check(t, c, later(t, c, alice, 100_000, send(alice, bob, 1))); r.Code != 0 {
		t.Fatalf("after the block there is room again: %s", r.Log)
	}
}

// What would fail now does not get into a mempool, and costs nothing; who tries
// too often waits for the next block.
func TestOnlyWhatWouldBeTakenEnters(t *testing.T) {
	c := chaintest.New(t, worktest.Network(chaintest.Fund(10*tally, "alice"))...)
	p := worktest.Begin(t, c, worktest.Order())
	p.Assign(0, "p0")
	c.Queue(chaintest.Named("p0"), p.SubmitMsg(p.Receipt(0)))
	c.Queue(chaintest.Named("p0"), p.SubmitMsg(p.Receipt(0)))
	twice := c.TakeQueue()
	if r := check(t, c, twice[0]); r.Code != 0 {
		t.Fatal(r.Log)
	}
	if r := check(t, c, twice[1]); r.Code == 0 || r.Codespace == sdkerrors.RootCodespace {
		t.Fatalf("the same receipt enters twice: %+v", r)
	}
	alice := chaintest.Named("alice")
	all := later(t, c, alice, 100_000, send(alice, chaintest.Named("p0"), 10*tally-10))
	if r := check(t, c, all); r.Code != 0 {
		t.Fatal(r.Log)
	}
	if r := check(t, c, later(t, c, alice, 100_000, send(alice, alice, 1))); r.Code == 0 {
		t.Fatal("a purse that is empty by then pays once more")
	}
	v := chaintest.Named("v1")
	c.Queue(v, &workv1.MsgReady{Provider: v.String(), Order: p.ID.String()})
	useless := c.TakeQueue()[0]
	tries := 0
	for ; tries < 100 && check(t, c, useless).Code != sdkerrors.ErrMempoolIsFull.ABCICode(); tries++ {
	}
	if tries == 0 || tries == 100 {
		t.Fatalf("%d useless transactions of one account were executed", tries)
	}
	c.NextBlock(time.Second)
	if r := check(t, c, useless); r.Code == sdkerrors.ErrMempoolIsFull.ABCICode() {
		t.Fatal(r.Log)
	}
}

// Failures that use much gas are counted by it: forty accounts with 32 failures of ten
// million gas each stopped blocks, for nothing.
func TestFailuresCountByTheirGas(t *testing.T) {
	c := chaintest.New(t, network()...)
	alice, bob := chaintest.Named("alice"), chaintest.Named("bob")
	for _, x := range []struct {
		gas  uint64
		want int
	}{{app.MaxGas, 1}, {app.MaxGas / 3, 3}, {100_000, 32}} {
		useless, tries := later(t, c, alice, x.gas, send(alice, bob, 1<<60)), 0
		for ; tries < 100 && check(t, c, useless).Code != sdkerrors.ErrMempoolIsFull.ABCICode(); tries++ {
		}
		if tries != x.want {
			t.Errorf("%d failures of %d gas were executed, want %d", tries, x.gas, x.want)
		}
		if r := check(t, c, later(t, c, bob, x.gas, send(bob, alice, 1))); r.Code != 0 {
			t.Errorf("another account suffers: %s", r.Log)
		}
		c.NextBlock(time.Second)
	}
}

// A block that keeps moves out is no block.
func TestProposalsKeepRoomForMoves(t *testing.T) {
	c := chaintest.New(t, network()...)
	alice, bob := chaintest.Named("alice"), chaintest.Named("bob")
	general := later(t, c, alice, app.MaxGas, send(alice, bob, 1))
	move := later(t, c, alice, app.MaxGas, &workv1.MsgReady{Provider: alice.String(), Order: "none"})
	huge := later(t, c, alice, app.MaxGas+1, send(alice, bob, 1))
	for name, x := range map[string]struct { // each has a proof before it, which takes some of the room
		txs  [][]byte
		want abci.ResponseProcessProposal_ProposalStatus
	}{
		"empty":                {nil, abci.ResponseProcessProposal_ACCEPT},
		"seven of ten":         {slices.Repeat([][]byte{general}, 7), abci.ResponseProcessProposal_ACCEPT},
		"eight of ten":         {slices.Repeat([][]byte{general}, 8), abci.ResponseProcessProposal_REJECT},
		"moves fill it":        {slices.Repeat([][]byte{move}, 9), abci.ResponseProcessProposal_ACCEPT},
		"more than fits":       {slices.Repeat([][]byte{move}, 10), abci.ResponseProcessProposal_REJECT},
		"moves first":          {[][]byte{move, general}, abci.ResponseProcessProposal_ACCEPT},
		"moves last":           {[][]byte{general, move}, abci.ResponseProcessProposal_REJECT},
		"no transaction":       {[][]byte{[]byte("x")}, abci.ResponseProcessProposal_REJECT},
		"more gas than may be": {[][]byte{huge}, abci.ResponseProcessProposal_REJECT},
	} {
		r, err := c.ProcessProposal(&abci.RequestProcessProposal{ProposerAddress: c.Proposer(), Height: c.LastBlockHeight() + 1, Time: c.Now(), Txs: begun(t, c, x.txs...)})
		if err != nil || r.Status != x.want {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
}

// What ends before it must have been in a block has a place in the mempool for nothing:
// a thousand of them kept everybody's general transactions out, and nobody paid.
func TestWhatEndsSoonDoesNotEnter(t *testing.T) {
	c := chaintest.New(t, network()...)
	alice := chaintest.Named("alice")
	height := uint64(c.LastBlockHeight())
	for _, x := range []struct {
		height uint64
		at     time.Time
		enters bool
	}{
		{height, time.Time{}, false},
		{height + 9, time.Time{}, false},
		{height + 10, time.Time{}, true},
		{0, c.Now(), false},
		{0, c.Now().Add(59 * time.Second), false},
		{0, c.Now().Add(time.Minute), true},
		{height + 10, c.Now(), false},
		{0, time.Time{}, true},
	} {
		tx := signed(t, c, func(b client.TxBuilder) {
			b.SetTimeoutHeight(x.height)
			if !x.at.IsZero() {
				b.SetTimeoutTimestamp(x.at)
			}
		}, []chaintest.Account{alice}, send(alice, alice, 1))
		if r := check(t, c, tx); (r.Code == 0) != x.enters {
			t.Errorf("ends at %d, %v: code %d, %s", x.height, x.at, r.Code, r.Log)
		}
	}
}

// Whoever pays for them, the moves of one account are its own: through many payers
// one provider filled the mempool, and stood before everybody in every block.
func TestPayersDoNotMakeManyOfOne(t *testing.T) {
	c := chaintest.New(t, worktest.Network(chaintest.Fund(10*tally, "payer0", "payer1"))...)
	p := worktest.Begin(t, c, worktest.Order())
	greedy, honest := chaintest.Named("p1"), chaintest.Named("p0")
	mempool := [][]byte(nil)
	move := func(payer chaintest.Account) []byte {
		m := &workv1.MsgReady{Provider: greedy.String(), Order: p.ID.String(), Withdraw: len(mempool)%2 == 1}
		return signed(t, c, func(b client.TxBuilder) { b.SetFeePayer(payer.Address) }, []chaintest.Account{greedy, payer}, m)
	}
	for i := range 100 {
		if tx := move(chaintest.Named(fmt.Sprint("payer", i%2))); check(t, c, tx).Code == 0 {
			mempool = append(mempool, tx)
		}
	}
	if len(mempool) != 64 {
		t.Fatalf("%d moves of one account wait, want 64", len(mempool))
	}
	c.Queue(honest, &workv1.MsgReady{Provider: honest.String(), Order: p.ID.String()})
	late := c.TakeQueue()[0]
	if r := check(t, c, late); r.Code != 0 {
		t.Fatal(r.Log)
	}
	r, err := c.PrepareProposal(&abci.RequestPrepareProposal{ProposerAddress: c.Proposer(), Height: c.LastBlockHeight() + 1, Time: c.Now().Add(time.Second), MaxTxBytes: 4 << 20})
	if err != nil || slices.IndexFunc(r.Txs, func(x []byte) bool { return bytes.Equal(x, late) }) != 2 {
		t.Fatalf("of %d moves the honest one is not the second: %v", len(r.Txs), err)
	}
}

// Moves come before general transactions in a block. Where one account sends both by turns,
// those whose turn has not come wait for the next block: none is refused, dropped or fails.
func TestMovesWaitForGeneralOnesBeforeThem(t *testing.T) {
	c := chaintest.New(t, worktest.Network(chaintest.Fund(10*tally, "p1"))...)
	p := worktest.Begin(t, c, worktest.Order())
	from := chaintest.Named("p1")
	var mempool [][]byte
	for i := range 8 {
		m := sdk.Msg(send(from, from, 1))
		if i%2 == 1 {
			m = &workv1.MsgReady{Provider: from.String(), Order: p.ID.String(), Withdraw: i%4 == 3}
		}
		tx := later(t, c, from, 200_000, m)
		if r := check(t, c, tx); r.Code != 0 {
			t.Fatalf("transaction %d is refused: %s", i, r.Log)
		}
		mempool = append(mempool, tx)
	}
	blocks := 0
	for ; len(mempool) > 0 && blocks < 8; blocks++ {
		b := propose(t, c, mempool, app.MaxGas)
		for i, r := range b.TxResults {
			if r.Code != 0 {
				t.Fatalf("transaction %d of a block failed: %s", i, r.Log)
			}
		}
		mempool = mempool[len(b.TxResults):] // by sequence
		for _, tx := range mempool {
			if r, err := c.CheckTx(&abci.RequestCheckTx{Tx: tx, Type: abci.CheckTxType_Recheck}); err != nil || r.Code != 0 {
				t.Fatalf("what waits is dropped after block %d: %v, %v", blocks, r, err)
			}
		}
	}
	if want := 5; blocks != want {
		t.Errorf("four general ones and four moves by turns took %d blocks, want %d", blocks, want)
	}
}

// signed returns a transaction of several, the first of whom sends it.
func signed(t *testing.T, c *chaintest.Chain, bend func(client.TxBuilder), by []chaintest.Account, m sdk.Msg) []byte {
	t.Helper()
	const mode = signing.SignMode_SIGN_MODE_DIRECT
	b := c.Tx.NewTxBuilder()
	b.SetGasLimit(chaintest.Gas)
	b.SetFeeAmount(coin.Of(c.Fee()))
	bend(b)
	err := b.SetMsgs(m)
	var sigs []signing.SignatureV2
	for _, a := range by {
		acc := c.Accounts.GetAccount(c.Ctx(), a.Address)
		sigs = append(sigs, signing.SignatureV2{
			PubKey: a.Key.PubKey(), Sequence: acc.GetSequence(), Data: &signing.SingleSignatureData{SignMode: mode},
		})
	}
	err = errors.Join(err, b.SetSignatures(sigs...))
	for i, a := range by {
		acc := c.Accounts.GetAccount(c.Ctx(), a.Address)
		data := authsigning.SignerData{
			Address: a.String(), PubKey: a.Key.PubKey(), ChainID: chaintest.ChainID,
			AccountNumber: acc.GetAccountNumber(), Sequence: acc.GetSequence(),
		}
		sig, fails := clienttx.SignWithPrivKey(t.Context(), mode, data, b, a.Key, c.Tx, acc.GetSequence())
		err = errors.Join(err, fails)
		sigs[i] = sig
	}
	tx, fails := []byte(nil), errors.Join(err, b.SetSignatures(sigs...))
	if fails == nil {
		tx, fails = c.Tx.TxEncoder()(b.GetTx())
	}
	if fails != nil {
		t.Fatal(fails)
	}
	return tx
}

// A sealed bid that is not revealed in time loses its deposit: so blocks keep room for reveals, as for other moves.
func TestRevealsAreMoves(t *testing.T) {
	if !app.AreMoves([]sdk.Msg{&auctionv1.MsgReveal{}, &auctionv1.MsgTakeOn{}}) || app.AreMoves([]sdk.Msg{&auctionv1.MsgSeal{}}) {
		t.Error("reveals, and words of who has sold, are the moves of auctions")
	}
}

// Vouchers and convictions count only while a window is open: so blocks keep room for them.
func TestVouchersAreMoves(t *testing.T) {
	if !app.AreMoves([]sdk.Msg{&sessionsv1.MsgRedeem{}, &sessionsv1.MsgTwoVouchers{}, &sessionsv1.MsgTwoReceipts{}}) {
		t.Error("vouchers and convictions are no moves")
	}
	for _, m := range []sdk.Msg{&sessionsv1.MsgOpen{}, &sessionsv1.MsgReturn{}, &sessionsv1.MsgFinish{}, &sessionsv1.MsgList{}, &sessionsv1.MsgUpdateParams{}} {
		if app.AreMoves([]sdk.Msg{m}) {
			t.Errorf("%T is a move", m)
		}
	}
}

// Whoever does not prove for a draw has no seats of it: so blocks keep room for proofs. They are a member's that has to prove.
func TestProofsAreMoves(t *testing.T) {
	if !app.AreMoves([]sdk.Msg{&seatsv1.MsgProve{}}) || app.AreMoves([]sdk.Msg{&seatsv1.MsgDelegate{}}) {
		t.Error("of the messages of seats proofs alone are moves")
	}
}
