package client

import (
	"context"
	"fmt"

	sdk "github.com/cosmos/cosmos-sdk/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	"github.com/cosmos/cosmos-sdk/x/feegrant"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
)

// FirstFees is what a newcomer needs for its first transactions, in utally: some
// hundred of them.
const FirstFees = 100_000

// Sponsor grants an account its first fees for messages of the named types, if it
// has too little money and no such grant of this account yet.
func (a *Account) Sponsor(ctx context.Context, newcomer string, messages []string) error {
	balance, err := banktypes.NewQueryClient(a.client.Conn).Balance(ctx, &banktypes.QueryBalanceRequest{Address: newcomer, Denom: coin.Denom})
	if err != nil {
		return fmt.Errorf("ask for the balance of %s: %w", newcomer, err)
	}
	if balance.Balance.Amount.GTE(coin.Of(FirstFees)[0].Amount) {
		return nil
	}
	granted, err := a.client.grants(ctx, newcomer)
	if err != nil {
		return err
	}
	for _, g := range granted {
		if g.Granter == a.Address {
			return nil
		}
	}
	limited, err := feegrant.NewAllowedMsgAllowance(&feegrant.BasicAllowance{SpendLimit: coin.Of(FirstFees)}, messages)
	if err != nil {
		return err
	}
	from, err := address.Parse(a.Address)
	if err != nil {
		return err
	}
	to, err := address.Parse(newcomer)
	if err != nil {
		return err
	}
	m, err := feegrant.NewMsgGrantAllowance(limited, from, to)
	if err != nil {
		return err
	}
	_, err = a.Send(ctx, m)
	return err
}

// findSponsor returns who pays the fees of an account that has no money; nil if
// nobody does.
func (a *Account) findSponsor(ctx context.Context) sdk.AccAddress {
	granted, err := a.client.grants(ctx, a.Address)
	if err != nil || len(granted) == 0 {
		return nil
	}
	granter, err := address.Parse(granted[0].Granter)
	if err != nil {
		return nil
	}
	return granter
}

func (c *Client) grants(ctx context.Context, grantee string) ([]*feegrant.Grant, error) {
	r, err := feegrant.NewQueryClient(c.Conn).Allowances(ctx, &feegrant.QueryAllowancesRequest{Grantee: grantee})
	if err != nil {
		return nil, fmt.Errorf("ask who pays for %s: %w", grantee, err)
	}
	return r.Allowances, nil
}
