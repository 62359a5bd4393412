package app

import (
	"fmt"

	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
)

// ledger is who has an account at genesis, and how much. All of it is at most coin.MaxSupply.
type ledger struct {
	auth     *authtypes.GenesisState
	bank     *banktypes.GenesisState
	accounts authtypes.GenesisAccounts
	known    map[string]bool // accounts, by address
	total    uint64          // utally
}

func newLedger() *ledger {
	bank := banktypes.DefaultGenesisState()
	bank.DenomMetadata = []banktypes.Metadata{{
		Base: coin.Denom, Display: coin.Display, Name: "Tally", Symbol: "TALLY",
		Description: "pays for checked computation",
		DenomUnits:  []*banktypes.DenomUnit{{Denom: coin.Denom}, {Denom: coin.Display, Exponent: coin.Exponent}},
	}}
	return &ledger{auth: authtypes.DefaultGenesisState(), bank: bank, known: map[string]bool{}}
}

// ledgerOf returns the ledger of a genesis that passed its check.
func ledgerOf(auth *authtypes.GenesisState, bank *banktypes.GenesisState) (*ledger, error) {
	accounts, err := authtypes.UnpackAccounts(auth.Accounts)
	if err != nil {
		return nil, err
	}
	l := &ledger{auth: auth, bank: bank, accounts: accounts, known: map[string]bool{}}
	for _, a := range accounts {
		l.known[a.GetAddress().String()] = true
	}
	for _, b := range bank.Balances {
		n := b.Coins.AmountOf(coin.Denom)
		if !n.IsUint64() || n.Uint64() > coin.MaxSupply-l.total {
			return nil, tooMuch()
		}
		l.total += n.Uint64()
	}
	return l, nil
}

func tooMuch() error {
	return fmt.Errorf("genesis: balances, stakes, bonds and the reserve exceed %d utally", coin.MaxSupply)
}

// add gives an address an account, and some utally.
func (l *ledger) add(text string, amount uint64) error {
	account, err := address.Parse(text)
	if err != nil {
		return err
	}
	if !l.known[text] {
		l.known[text] = true
		l.accounts = append(l.accounts, authtypes.NewBaseAccountWithAddress(account))
	}
	return l.credit(text, amount)
}

// hold gives a module some utally.
func (l *ledger) hold(module string, amount uint64) error {
	return l.credit(authtypes.NewModuleAddress(module).String(), amount)
}

// held returns what a module has, in utally.
func (l *ledger) held(module string) uint64 {
	text := authtypes.NewModuleAddress(module).String()
	for _, b := range l.bank.Balances {
		if b.Address == text {
			return b.Coins.AmountOf(coin.Denom).Uint64() // ledgerOf and credit see to it
		}
	}
	return 0
}

func (l *ledger) credit(text string, amount uint64) error {
	if amount > coin.MaxSupply-l.total {
		return tooMuch()
	}
	if l.total += amount; amount == 0 {
		return nil
	}
	for i := range l.bank.Balances {
		if b := &l.bank.Balances[i]; b.Address == text {
			b.Coins = b.Coins.Add(coin.Of(amount)...)
			return nil
		}
	}
	l.bank.Balances = append(l.bank.Balances, banktypes.Balance{Address: text, Coins: coin.Of(amount)})
	return nil
}

// states returns the ledger as the genesis of accounts and balances, in the order of addresses.
func (l *ledger) states() (auth *authtypes.GenesisState, bank *banktypes.GenesisState, err error) {
	l.bank.Balances = banktypes.SanitizeGenesisBalances(l.bank.Balances)
	l.auth.Accounts, err = authtypes.PackAccounts(authtypes.SanitizeGenesisAccounts(l.accounts))
	return l.auth, l.bank, err
}
