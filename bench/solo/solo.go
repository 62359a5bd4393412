// Package solo is a chain without a network, for measurements: who measures makes its blocks.
//
// Call [New] with a [Genesis], then [Chain.Make] for each block; [MeasureEnds] measures the ends of
// blocks alone. Invariant: a chain is used by one goroutine.
package solo

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	cmttypes "github.com/cometbft/cometbft/types"
	dbm "github.com/cosmos/cosmos-db"

	"cosmossdk.io/log/v2"

	"github.com/cosmos/cosmos-sdk/baseapp"
	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	pruningtypes "github.com/cosmos/cosmos-sdk/store/v2/pruning/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/core/canon"
	beaconv1 "github.com/tally-network/tally/gen/tally/beacon/v1"
)

// Chain is a chain without a network.
type Chain struct {
	*app.App
	Doc      *cmttypes.GenesisDoc
	producer []byte
	height   int64
	time     time.Time
	Happened map[string]map[string]bool // of the last block: the orders that events of a type name
}

// What the chain is called, and the limit of a transaction.
const (
	ID  = "tally-bench"
	Gas = 5_000_000
)

// Genesis is one whose consensus is an account's, with the key of its producer.
func Genesis(producer string) (app.Genesis, cmted25519.PubKey) {
	key := Producer().PubKey().(cmted25519.PubKey)
	public := Prover().Public().(ed25519.PublicKey)
	return app.Genesis{
		ChainID: ID, Time: time.Unix(1_800_000_000, 0).UTC(),
		Validators: []app.Validator{{Account: producer, ConsensusKey: key.Bytes(), Votes: 1}},
		Keys:       []beaconv1.Key{{Account: producer, Key: public}},
	}, key
}

// Producer is the key of the producer.
func Producer() cmted25519.PrivKey { return cmted25519.GenPrivKeyFromSecret([]byte("producer")) }

// Prover is the key with which the producer proves the beacon's values.
func Prover() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)) }

// New begins a chain on a database. bend, if any, may change the state of its modules.
func New(db dbm.DB, g app.Genesis, producer cmted25519.PubKey, bend func(a *app.App, state map[string]json.RawMessage) error) (*Chain, error) {
	doc, err := g.Doc()
	if err != nil {
		return nil, err
	}
	s := &Chain{Doc: doc, producer: producer.Address(), time: g.Time}
	if s.App, err = app.New(log.NewNopLogger(), db, ID, baseapp.SetPruning(pruningtypes.NewCustomPruningOptions(10, 10))); err != nil {
		return nil, err
	}
	s.ProveWith(Prover())
	if bend != nil {
		var state map[string]json.RawMessage
		if err := json.Unmarshal(doc.AppState, &state); err != nil {
			return nil, err
		}
		if err := bend(s.App, state); err != nil {
			return nil, err
		}
		if doc.AppState, err = json.Marshal(state); err != nil {
			return nil, err
		}
	}
	params := doc.ConsensusParams.ToProto()
	if _, err := s.InitChain(&abci.RequestInitChain{ChainId: ID, Time: s.time, InitialHeight: 1, ConsensusParams: &params, AppStateBytes: doc.AppState}); err != nil {
		return nil, err
	}
	_, err = s.Make(time.Second) // so that there is a committed state to read
	return s, err
}

// Make makes a block of transactions, some time after the last, and returns their results.
func (s *Chain) Make(after time.Duration, txs ...[]byte) ([]*abci.ExecTxResult, error) {
	s.height++
	s.time = s.time.Add(after)
	hash := canon.Sum(canon.Domain("bench/block"), canon.Encode(func(e *canon.Encoder) { e.Uint(uint64(s.height)) }))
	begun := txs
	if s.height > 1 { // a context of the first block would forget the genesis
		var err error
		if begun, err = s.Begun(s.NewNextBlockContext(cmtproto.Header{ChainID: ID, Height: s.height, Time: s.time, ProposerAddress: s.producer}), txs); err != nil {
			return nil, err
		}
	}
	r, err := s.FinalizeBlock(&abci.RequestFinalizeBlock{Height: s.height, Time: s.time, Hash: hash[:], ProposerAddress: s.producer, Txs: begun})
	if err == nil {
		_, err = s.Commit()
	}
	if err != nil {
		return nil, err
	}
	s.Happened = map[string]map[string]bool{}
	for _, e := range r.Events {
		for _, a := range e.Attributes {
			if a.Key != "order" {
				continue
			}
			if s.Happened[e.Type] == nil {
				s.Happened[e.Type] = map[string]bool{}
			}
			s.Happened[e.Type][a.Value] = true
		}
	}
	return r.TxResults[len(begun)-len(txs):], nil
}

// Last returns the height and the time of the last block.
func (s *Chain) Last() (int64, time.Time) { return s.height, s.time }

// Message is one that generated code encodes.
type Message interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// Ask answers a query of gRPC from the newest state.
func (s *Chain) Ask(method string, request, reply Message) error {
	data, err := request.Marshal()
	if err != nil {
		return err
	}
	r, err := s.Query(context.Background(), &abci.RequestQuery{Path: method, Data: data})
	if err == nil && r.Code != 0 {
		err = fmt.Errorf("%s: %s", method, r.Log)
	}
	if err != nil {
		return err
	}
	return reply.Unmarshal(r.Value)
}

// SignFor signs a transaction of an account's messages, so many after its last in a block.
func (s *Chain) SignFor(key *secp256k1.PrivKey, after uint64, gas uint64, msgs ...sdk.Msg) ([]byte, error) {
	account := s.Accounts.GetAccount(s.NewContext(true), sdk.AccAddress(key.PubKey().Address()))
	rules, err := s.Block.Params(s.NewContext(true))
	if err != nil {
		return nil, err
	}
	signer := app.Signer{ChainID: ID, Key: key, Number: account.GetAccountNumber(), Sequence: account.GetSequence() + after}
	return s.Sign(signer, gas, coin.Fee(rules.GasPrice, gas), msgs...)
}

// Seeded returns a key that follows from a name.
func Seeded(name string) ed25519.PrivateKey {
	h := canon.Sum(canon.Domain("bench/solo"), []byte(name))
	return ed25519.NewKeyFromSeed(h[:])
}

// OnDisk returns the bytes of the files in a folder, such as a chain's database.
func OnDisk(dir string) (n int64, err error) {
	return n, filepath.Walk(dir, func(_ string, f os.FileInfo, err error) error {
		if err == nil && !f.IsDir() {
			n += f.Size()
		}
		return err
	})
}
