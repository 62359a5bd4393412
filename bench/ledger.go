package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	dbm "github.com/cosmos/cosmos-db"

	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/bench/solo"
	"github.com/tally-network/tally/chain/app"
	chain "github.com/tally-network/tally/chain/x/dispute"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/dispute"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
)

// ledger is a chain without a network, whose genesis holds one dispute. The
// order that the dispute is about is not there, so the transaction that ends the
// game fails when the game is over, at the settlement: what is measured is all
// but that.
type ledger struct {
	*solo.Chain
	players map[dispute.Side]*secp256k1.PrivKey
	moves   int // that were made
}

const ledgerFees = 1_000_000 // utally that a player has for fees

func newLedger(g dispute.Game) (*ledger, error) {
	l := &ledger{players: map[dispute.Side]*secp256k1.PrivKey{}, moves: g.Moves}
	for _, side := range []dispute.Side{dispute.Defender, dispute.Challenger} {
		l.players[side] = secp256k1.GenPrivKeyFromSecret([]byte(side.String()))
	}
	genesis, producer := solo.Genesis(l.address(dispute.Defender))
	for _, side := range []dispute.Side{dispute.Defender, dispute.Challenger} {
		genesis.Accounts = append(genesis.Accounts, app.Account{Address: l.address(side), Balance: ledgerFees})
	}
	disputes := chain.DefaultGenesis()
	g.Since = genesis.Time.UnixMilli()
	disputes.Next, disputes.Disputes = 2, []disputev1.GenesisDispute{{
		Id: 1, Game: canon.Marshal(&g),
		Parties: disputev1.Parties{Order: canon.Sum("imagined").String(), Defender: l.address(dispute.Defender), Challenger: l.address(dispute.Challenger)},
	}}
	var err error
	l.Chain, err = solo.New(dbm.NewMemDB(), genesis, producer, func(a *app.App, state map[string]json.RawMessage) (err error) {
		state[chain.Name], err = a.Codec.MarshalJSON(disputes)
		return err
	})
	return l, err
}

func (l *ledger) address(s dispute.Side) string {
	return sdk.AccAddress(l.players[s].PubKey().Address()).String()
}

// move makes a block of one transaction and returns its bytes and its gas.
func (l *ledger) move(side dispute.Side, m dispute.Move, last bool) (bytes int, gas uint64, err error) {
	tx, err := l.SignFor(l.players[side], 0, solo.Gas, &disputev1.MsgMove{Player: l.address(side), Dispute: 1, Move: dispute.EncodeMove(m), Number: uint32(l.moves)})
	if err != nil {
		return 0, 0, err
	}
	done, err := l.Make(time.Second, tx)
	switch {
	case err != nil:
		return 0, 0, err
	case done[0].Code != 0 && !last:
		return 0, 0, fmt.Errorf("a move of %d bytes: %s", len(tx), done[0].Log)
	case done[0].Code == 0 && last:
		return 0, 0, errors.New("a dispute about no order was settled")
	}
	l.moves++
	return len(tx), uint64(done[0].GasUsed), nil
}
