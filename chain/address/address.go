// Package address writes accounts as text: bech32 with the prefix tally.
//
// Importing it fixes the prefixes of the SDK's process-wide configuration,
// which AccAddress.String reads; every package of the chain imports it.
//
// Call [Parse] for what people write.
//
// Invariant: an account has one text, in which a mistyped letter is found.
//
// Source: BIP 173.
package address

import (
	"fmt"

	"github.com/cosmos/cosmos-sdk/codec/address"
	sdk "github.com/cosmos/cosmos-sdk/types"
)

// Prefix is the human-readable part of an account's address.
const Prefix = "tally"

var codec = address.NewBech32Codec(Prefix)

func init() {
	c := sdk.GetConfig()
	c.SetBech32PrefixForAccount(Prefix, Prefix+"pub")
	c.SetBech32PrefixForValidator(Prefix+"valoper", Prefix+"valoperpub")
	c.SetBech32PrefixForConsensusNode(Prefix+"valcons", Prefix+"valconspub")
}

// Parse reads an account from its text. The form is unique: Parse accepts only
// what String would write.
func Parse(text string) (sdk.AccAddress, error) {
	b, err := codec.StringToBytes(text)
	if err != nil {
		return nil, fmt.Errorf("account %.80q is not a %s1… address: %w", text, Prefix, err)
	}
	if back, err := codec.BytesToString(b); err != nil || back != text {
		return nil, fmt.Errorf("account %.80q is not in lower case", text)
	}
	return b, nil
}
