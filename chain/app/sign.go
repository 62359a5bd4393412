package app

import (
	"context"
	"fmt"

	clienttx "github.com/cosmos/cosmos-sdk/client/tx"
	cryptotypes "github.com/cosmos/cosmos-sdk/crypto/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/tx/signing"
	authsigning "github.com/cosmos/cosmos-sdk/x/auth/signing"

	"github.com/tally-network/tally/chain/coin"
)

// Signer is an account about to sign a transaction.
type Signer struct {
	ChainID  string
	Key      cryptotypes.PrivKey
	Number   uint64         // of the account
	Sequence uint64         // of the transaction
	Sponsor  sdk.AccAddress // pays the fee, as it has granted; nil: the account itself does
	Beside   []Signer       // the others whose signatures the messages need, in their order
}

// Sign returns the bytes of a transaction of msgs, with a limit of gas and a fee
// in utally.
func (e Encoding) Sign(s Signer, gas, fee uint64, msgs ...sdk.Msg) ([]byte, error) {
	const mode = signing.SignMode_SIGN_MODE_DIRECT
	b := e.Tx.NewTxBuilder()
	if err := b.SetMsgs(msgs...); err != nil {
		return nil, fmt.Errorf("build transaction: %w", err)
	}
	b.SetGasLimit(gas)
	b.SetFeeAmount(coin.Of(fee))
	b.SetFeeGranter(s.Sponsor)
	// Each signature covers the headers of all, so those are set first.
	signers := append([]Signer{s}, s.Beside...)
	signatures := make([]signing.SignatureV2, len(signers))
	for i, s := range signers {
		signatures[i] = signing.SignatureV2{
			PubKey: s.Key.PubKey(), Sequence: s.Sequence, Data: &signing.SingleSignatureData{SignMode: mode},
		}
	}
	if err := b.SetSignatures(signatures...); err != nil {
		return nil, fmt.Errorf("build transaction: %w", err)
	}
	for i, s := range signers {
		data := authsigning.SignerData{
			Address: sdk.AccAddress(s.Key.PubKey().Address()).String(), PubKey: s.Key.PubKey(),
			ChainID: s.ChainID, AccountNumber: s.Number, Sequence: s.Sequence,
		}
		var err error
		if signatures[i], err = clienttx.SignWithPrivKey(context.Background(), mode, data, b, s.Key, e.Tx, s.Sequence); err != nil {
			return nil, fmt.Errorf("sign transaction: %w", err)
		}
	}
	if err := b.SetSignatures(signatures...); err != nil {
		return nil, fmt.Errorf("sign transaction: %w", err)
	}
	return e.Tx.TxEncoder()(b.GetTx())
}
