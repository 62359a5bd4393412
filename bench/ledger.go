package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	dbm "github.com/cosmos/cosmos-db"

	"cosmossdk.io/log/v2"

	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/coin"
	chain "github.com/tally-network/tally/chain/x/dispute"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	powerv1 "github.com/tally-network/tally/gen/tally/power/v1"
)

// ledger is a chain without a network, whose genesis holds one dispute. The
// order that the dispute is about is not there, so the transaction that ends the
// game fails when the game is over, at the settlement: what is measured is all
// but that.
type ledger struct {
	*app.App
	players  map[dispute.Side]*secp256k1.PrivKey
	producer []byte
	height   int64
	time     time.Time
}

const (
	ledgerChain = "tally-bench"
	ledgerGas   = 5_000_000 // limit of a transaction
	ledgerFees  = 1_000_000 // utally that a player has for fees
)

func newLedger(g dispute.Game) (*ledger, error) {
	l := &ledger{players: map[dispute.Side]*secp256k1.PrivKey{}, time: time.Unix(1_800_000_000, 0).UTC()}
	genesis := app.Genesis{ChainID: ledgerChain, Time: l.time}
	for _, side := range []dispute.Side{dispute.Defender, dispute.Challenger} {
		l.players[side] = secp256k1.GenPrivKeyFromSecret([]byte(side.String()))
		genesis.Accounts = append(genesis.Accounts, app.Account{Address: l.address(side), Balance: ledgerFees})
	}
	consensus := cmted25519.GenPrivKeyFromSecret([]byte("producer")).PubKey()
	l.producer = consensus.Address()
	genesis.Validators = []powerv1.Validator{{Account: l.address(dispute.Defender), ConsensusKey: consensus.Bytes(), Power: 1}}
	doc, err := genesis.Doc()
	if err != nil {
		return nil, err
	}
	if l.App, err = app.New(log.NewNopLogger(), dbm.NewMemDB(), ledgerChain); err != nil {
		return nil, err
	}
	disputes := chain.DefaultGenesis()
	g.Since = l.time.UnixMilli()
	disputes.Next, disputes.Disputes = 2, []disputev1.GenesisDispute{{
		Id: 1, Game: canon.Marshal(&g),
		Parties: disputev1.Parties{Order: canon.Sum("imagined").String(), Defender: l.address(dispute.Defender), Challenger: l.address(dispute.Challenger)},
	}}
	var state map[string]json.RawMessage
	if err := json.Unmarshal(doc.AppState, &state); err != nil {
		return nil, err
	}
	if state[chain.Name], err = l.Codec.MarshalJSON(disputes); err != nil {
		return nil, err
	}
	if doc.AppState, err = json.Marshal(state); err != nil {
		return nil, err
	}
	params := doc.ConsensusParams.ToProto()
	if _, err := l.InitChain(&abci.RequestInitChain{ChainId: ledgerChain, Time: l.time, InitialHeight: 1, ConsensusParams: &params, AppStateBytes: doc.AppState}); err != nil {
		return nil, err
	}
	_, err = l.block() // so that there is a committed state to read
	return l, err
}

// block makes a block of transactions, a second after the last.
func (l *ledger) block(txs ...[]byte) ([]*abci.ExecTxResult, error) {
	l.height++
	l.time = l.time.Add(time.Second)
	r, err := l.FinalizeBlock(&abci.RequestFinalizeBlock{Height: l.height, Time: l.time, ProposerAddress: l.producer, Txs: txs})
	if err == nil {
		_, err = l.Commit()
	}
	if err != nil {
		return nil, err
	}
	return r.TxResults, nil
}

func (l *ledger) address(s dispute.Side) string {
	return sdk.AccAddress(l.players[s].PubKey().Address()).String()
}

// move makes a block of one transaction and returns its bytes and its gas.
func (l *ledger) move(side dispute.Side, m dispute.Move, last bool) (bytes int, gas uint64, err error) {
	key := l.players[side]
	account := l.Accounts.GetAccount(l.NewContext(true), sdk.AccAddress(key.PubKey().Address()))
	signer := app.Signer{ChainID: ledgerChain, Key: key, Number: account.GetAccountNumber(), Sequence: account.GetSequence()}
	rules, err := l.Block.Params(l.NewContext(true))
	if err != nil {
		return 0, 0, err
	}
	tx, err := l.Sign(signer, ledgerGas, coin.Fee(rules.GasPrice, ledgerGas), &disputev1.MsgMove{Player: l.address(side), Dispute: 1, Move: dispute.EncodeMove(m)})
	if err != nil {
		return 0, 0, err
	}
	done, err := l.block(tx)
	switch {
	case err != nil:
		return 0, 0, err
	case done[0].Code != 0 && !last:
		return 0, 0, fmt.Errorf("a move of %d bytes: %s", len(tx), done[0].Log)
	case done[0].Code == 0 && last:
		return 0, 0, errors.New("a dispute about no order was settled")
	}
	return len(tx), uint64(done[0].GasUsed), nil
}
