// Package address writes accounts as text: bech32 with the prefix tally.
//
// Importing it fixes the prefixes of the SDK's process-wide configuration,
// which AccAddress.String reads; every package of the chain imports it.
//
// Call [Parse] for what people write. [Policy] is the account that votes of power speak for.
//
// Invariant: an account has one text, in which a mistyped letter is found.
//
// Source: BIP 173.
package address

import (
	"fmt"
	"strings"

	"github.com/cometbft/cometbft/crypto"

	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkaddress "github.com/cosmos/cosmos-sdk/types/address"
	"github.com/cosmos/cosmos-sdk/types/bech32"
)

// Prefix is the human-readable part of an account's address.
const Prefix = "tally"

func init() {
	c := sdk.GetConfig()
	c.SetBech32PrefixForAccount(Prefix, Prefix+"pub")
	c.SetBech32PrefixForValidator(Prefix+"valoper", Prefix+"valoperpub")
	c.SetBech32PrefixForConsensusNode(Prefix+"valcons", Prefix+"valconspub")
}

// PolicyName names the module whose account signs what a vote of computing power has passed.
const PolicyName = "policy"

// Policy returns the account that may change rules: no key controls it.
func Policy() sdk.AccAddress { return Module(PolicyName) }

// Module returns the account of a module, as the SDK derives it from its name.
func Module(name string) sdk.AccAddress { return crypto.AddressHash([]byte(name)).Bytes() }

// Parse reads an account from its text. The form is unique: Parse accepts only
// what String would write.
func Parse(text string) (sdk.AccAddress, error) {
	// Not by the codec of the SDK, which reads the process-wide configuration each time.
	prefix, b, err := bech32.DecodeAndConvert(text)
	if err == nil && (prefix != Prefix || len(b) == 0 || len(b) > sdkaddress.MaxAddrLen) {
		err = fmt.Errorf("its prefix is %.80q, and it has %d bytes", prefix, len(b))
	}
	if err != nil {
		return nil, fmt.Errorf("account %.80q is not a %s1… address: %w", text, Prefix, err)
	}
	if strings.ToLower(text) != text { // nothing else is left open: a text's last bits must be 0
		return nil, fmt.Errorf("account %.80q is not in lower case", text)
	}
	return b, nil
}
