package app_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"

	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	"github.com/cosmos/cosmos-sdk/x/feegrant"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// Whoever proposes a block, what pays too little is not executed in it.
func TestFeeFloorHoldsInBlocks(t *testing.T) {
	c := chaintest.New(t, network()...)
	alice, bob := chaintest.Named("alice"), chaintest.Named("bob")
	for _, fee := range []uint64{0, 10, c.Fee() - 1} {
		c.QueueWithFee(alice, fee, send(alice, bob, 1))
		r := c.NextBlock(time.Second).TxResults[0]
		if r.Code != sdkerrors.ErrInsufficientFee.ABCICode() || !strings.Contains(r.Log, "cost at least") {
			t.Errorf("a fee of %d: code %d, %s", fee, r.Code, r.Log)
		}
	}
	if got := c.Balance(bob.Address); got != 5_000*tally {
		t.Fatalf("bob has %d utally", got)
	}
	c.QueueWithFee(alice, c.Fee(), send(alice, bob, 1))
	if r := c.NextBlock(time.Second).TxResults[0]; r.Code != 0 {
		t.Fatal(r.Log)
	}
}

// sign signs msgs of alice with a limit of gas and the least fee for chaintest's.
func sign(t *testing.T, c *chaintest.Chain, gas uint64, bend func(*app.Signer), msgs ...sdk.Msg) []byte {
	t.Helper()
	alice := chaintest.Named("alice")
	acc := c.Accounts.GetAccount(c.Ctx(), alice.Address)
	s := app.Signer{ChainID: chaintest.ChainID, Key: alice.Key, Number: acc.GetAccountNumber(), Sequence: acc.GetSequence()}
	if bend != nil {
		bend(&s)
	}
	tx, err := c.Sign(s, gas, 100*c.Fee(), msgs...)
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

// Transactions have bounds that no fee moves.
func TestLimitsOfTransactions(t *testing.T) {
	c := chaintest.New(t, network()...)
	alice, bob := chaintest.Named("alice"), chaintest.Named("bob")
	many := make([]sdk.Msg, 17)
	for i := range many {
		many[i] = send(alice, bob, 1)
	}
	large := feegrant.MsgRevokeAllowance{Granter: alice.String(), Grantee: strings.Repeat("x", app.MaxTx)}
	for _, x := range []struct {
		name string
		tx   []byte
		want uint32
	}{
		{"gas", sign(t, c, app.MaxGas+1, nil, send(alice, bob, 1)), sdkerrors.ErrInvalidGasLimit.ABCICode()},
		{"messages", sign(t, c, chaintest.Gas, nil, many...), sdkerrors.ErrInvalidRequest.ABCICode()},
		{"bytes", sign(t, c, app.MaxGas, nil, &large), sdkerrors.ErrTxTooLarge.ABCICode()},
		{"fine", sign(t, c, app.MaxGas, nil, many[:16]...), 0}, // last: it takes what an account may have in the mempool
	} {
		r, err := c.CheckTx(&abci.RequestCheckTx{Tx: x.tx})
		if err != nil || r.Code != x.want {
			t.Errorf("%s: code %d, want %d: %v, %s", x.name, r.Code, x.want, err, r.Log)
		}
	}
}

// Who has no money yet may use what another grants.
func TestSponsorPaysForANewcomer(t *testing.T) {
	c := chaintest.New(t, append(network(), chaintest.Fund(1, "newcomer"))...)
	alice, newcomer := chaintest.Named("alice"), chaintest.Named("newcomer")
	grant, err := feegrant.NewMsgGrantAllowance(&feegrant.BasicAllowance{SpendLimit: coin.Of(c.Fee())}, alice.Address, newcomer.Address)
	if err != nil {
		t.Fatal(err)
	}
	c.Deliver(alice, grant)
	pay := func() *abci.ExecTxResult {
		acc := c.Accounts.GetAccount(c.Ctx(), newcomer.Address)
		tx, err := c.Sign(app.Signer{
			ChainID: chaintest.ChainID, Key: newcomer.Key, Number: acc.GetAccountNumber(), Sequence: acc.GetSequence(), Sponsor: alice.Address,
		}, chaintest.Gas, c.Fee(), send(newcomer, alice, 1))
		if err != nil {
			t.Fatal(err)
		}
		return c.NextBlockOf(tx).TxResults[0]
	}
	if r := pay(); r.Code != 0 {
		t.Fatal(r.Log)
	}
	if r := pay(); r.Code == 0 {
		t.Fatal("the grant paid more than it holds")
	}
	if got := c.Balance(authtypes.NewModuleAddress(authtypes.FeeCollectorName)); got != 0 {
		t.Fatalf("%d utally of fees are left", got)
	}
}

// A grant that has ended is removed, after which idle blocks change nothing again.
func TestIdleBlocksWithGrants(t *testing.T) {
	c := chaintest.New(t, network()...)
	alice, bob := chaintest.Named("alice"), chaintest.Named("carol")
	end := c.Now().Add(time.Minute)
	grant, err := feegrant.NewMsgGrantAllowance(&feegrant.BasicAllowance{Expiration: &end}, alice.Address, bob.Address)
	if err != nil {
		t.Fatal(err)
	}
	c.Deliver(alice, grant)
	c.NextBlock(2 * time.Minute)
	last := c.NextBlock(time.Second).AppHash
	if b := c.NextBlock(time.Second); !bytes.Equal(b.AppHash, last) {
		t.Fatal("an idle block changed the app hash")
	}
}
