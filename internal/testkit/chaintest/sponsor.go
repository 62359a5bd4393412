package chaintest

import (
	"encoding/json"
	"fmt"

	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/cosmos/cosmos-sdk/x/feegrant"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/app"
)

// sponsor pays fees in tests.
var sponsor = Named("sponsor of all fees")

const purse = 1_000_000_000 // utally, for some million transactions

// sponsorAll lets the sponsor pay the fees of everybody whom a genesis names.
func sponsorAll(a *app.App, g app.Genesis, doc *cmttypes.GenesisDoc) error {
	var names []string
	for _, x := range g.Accounts {
		names = append(names, x.Address)
	}
	for _, x := range g.Validators {
		names = append(names, x.Account)
	}
	for _, x := range g.Peers {
		names = append(names, x.Account)
	}
	grants, known := &feegrant.GenesisState{}, map[string]bool{sponsor.String(): true}
	for _, name := range names {
		if known[name] {
			continue
		}
		known[name] = true
		grantee, err := address.Parse(name)
		if err != nil {
			return err
		}
		grant, err := feegrant.NewGrant(sponsor.Address, grantee, &feegrant.BasicAllowance{})
		if err != nil {
			return err
		}
		grants.Allowances = append(grants.Allowances, grant)
	}
	var state map[string]json.RawMessage
	if err := json.Unmarshal(doc.AppState, &state); err != nil {
		return err
	}
	var err error
	if state[feegrant.ModuleName], err = a.Codec.MarshalJSON(grants); err != nil {
		return fmt.Errorf("write grants: %w", err)
	}
	doc.AppState, err = json.Marshal(state)
	return err
}
