package client

import (
	"context"
	"fmt"
	"time"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/query"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	"github.com/cosmos/cosmos-sdk/x/feegrant"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/coin"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
)

// FirstFees is what a newcomer needs for its first transactions, in utally: some
// hundred of them.
const FirstFees = 100_000

// Sponsor grants an account its first fees for messages of the named types, if it has too little
// money. It grants nothing while a tenth of them is left of an earlier grant of this account. It
// reports whether it did.
func (a *Account) Sponsor(ctx context.Context, newcomer string, messages []string) (granted bool, err error) {
	balance, err := banktypes.NewQueryClient(a.client.Conn).Balance(ctx, &banktypes.QueryBalanceRequest{Address: newcomer, Denom: coin.Denom})
	if err != nil {
		return false, fmt.Errorf("ask for the balance of %s: %w", newcomer, err)
	}
	if balance.Balance.Amount.GTE(coin.Of(FirstFees)[0].Amount) {
		return false, nil
	}
	limited, err := feegrant.NewAllowedMsgAllowance(&feegrant.BasicAllowance{SpendLimit: coin.Of(FirstFees)}, messages)
	if err != nil {
		return false, err
	}
	from, err := address.Parse(a.Address)
	if err != nil {
		return false, err
	}
	to, err := address.Parse(newcomer)
	if err != nil {
		return false, err
	}
	m, err := feegrant.NewMsgGrantAllowance(limited, from, to)
	if err != nil {
		return false, err
	}
	msgs := []sdk.Msg{m}
	if old := a.client.grant(ctx, a.Address, newcomer); old != nil {
		if left := a.client.left(old); left == nil || left.AmountOf(coin.Denom).GTE(coin.Of(FirstFees / 10)[0].Amount) {
			return false, nil
		}
		revoke := feegrant.NewMsgRevokeAllowance(from, to)
		msgs = []sdk.Msg{&revoke, m}
	}
	_, err = a.Send(ctx, msgs...)
	return err == nil, err
}

// Others' grants are looked at up to a number, and used up to another: anybody may
// make grants to anybody, for next to nothing, that pay for nothing.
const (
	maxGrants   = 100
	maxSponsors = 8
)

// sponsors returns who may pay a fee for messages of an account that has no money.
// The validator under which it is registered comes first, whoever else grants it
// something; then those whose grants are for such messages and large enough.
func (a *Account) sponsors(ctx context.Context, fee sdk.Coins, msgs []sdk.Msg) (out []sdk.AccAddress) {
	var granted []*feegrant.Grant
	if r, err := providerv1.NewQueryClient(a.client.Conn).Peer(ctx, &providerv1.QueryPeerRequest{Account: a.Address}); err == nil {
		granted = append(granted, a.client.grant(ctx, r.Peer.Listing.Validator, a.Address))
	}
	r, err := feegrant.NewQueryClient(a.client.Conn).Allowances(ctx, &feegrant.QueryAllowancesRequest{
		Grantee: a.Address, Pagination: &query.PageRequest{Limit: maxGrants},
	})
	if err == nil {
		granted = append(granted, r.Allowances...)
	}
	for i, g := range granted {
		if g == nil || i > 0 && granted[0] != nil && g.Granter == granted[0].Granter || !a.client.pays(g, fee, msgs) {
			continue
		}
		if granter, err := address.Parse(g.Granter); err == nil && len(out) < maxSponsors {
			out = append(out, granter)
		}
	}
	return out
}

// grant returns what one account grants another; nil if that is nothing.
func (c *Client) grant(ctx context.Context, granter, grantee string) *feegrant.Grant {
	r, err := feegrant.NewQueryClient(c.Conn).Allowance(ctx, &feegrant.QueryAllowanceRequest{Granter: granter, Grantee: grantee})
	if err != nil {
		return nil // where it cannot be asked for, neither can it be used
	}
	return r.Allowance
}

// pays reports whether a grant is for such messages, and large enough for their fee,
// by the rule that the chain has for it.
func (c *Client) pays(g *feegrant.Grant, fee sdk.Coins, msgs []sdk.Msg) bool {
	var rule feegrant.FeeAllowanceI
	if err := c.enc.Registry.UnpackAny(g.Allowance, &rule); err != nil {
		return false
	}
	_, err := rule.Accept(sdk.Context{}.WithBlockTime(time.Now()).WithGasMeter(storetypes.NewInfiniteGasMeter()), fee, msgs)
	return err == nil
}

// left returns what a grant of Sponsor still pays; nil if it has no limit, or is
// none of these.
func (c *Client) left(g *feegrant.Grant) sdk.Coins {
	var rule feegrant.FeeAllowanceI
	if err := c.enc.Registry.UnpackAny(g.Allowance, &rule); err != nil {
		return nil
	}
	if limited, ok := rule.(*feegrant.AllowedMsgAllowance); ok {
		if rule, _ = limited.GetAllowance(); rule == nil {
			return nil
		}
	}
	if basic, ok := rule.(*feegrant.BasicAllowance); ok {
		return basic.SpendLimit
	}
	return nil
}
