package app_test

import (
	"fmt"
	"strings"
	"testing"

	abci "github.com/cometbft/cometbft/abci/types"
	"github.com/cosmos/gogoproto/proto"

	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/query"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	"github.com/cosmos/cosmos-sdk/x/feegrant"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

func TestPagesAreBounded(t *testing.T) {
	for _, c := range []struct {
		page *query.PageRequest
		want uint64 // 0: refused
	}{
		{nil, 100}, {&query.PageRequest{}, 100}, {&query.PageRequest{Limit: 7}, 7}, {&query.PageRequest{Limit: 1 << 62}, app.MaxPage},
		{&query.PageRequest{Offset: 10_000}, 100}, {&query.PageRequest{Offset: 10_001}, 0}, {&query.PageRequest{CountTotal: true, Limit: 5_000}, app.MaxPage},
	} {
		req := &authtypes.QueryAccountsRequest{Pagination: c.page}
		if err := app.BoundPage(req); (err != nil) != (c.want == 0) {
			t.Errorf("%v: %v", c.page, err)
		} else if c.want != 0 && (req.Pagination.Limit != c.want || req.Pagination.CountTotal) {
			t.Errorf("%v: %v", c.page, req.Pagination)
		}
	}
	for method, want := range map[string]bool{
		"/cosmos.auth.v1beta1.Query/Accounts": true, "/tally.work.v1.Query/Leases": true, "/tally.provider.v1.Query/Peers": true,
		"/tally.work.v1.Query/Lease": false, "/none/None": false, "": false, "/store/bank/key": false,
	} {
		if app.IsPaged(method) != want {
			t.Errorf("%s: %v", method, !want)
		}
	}
	for _, req := range []any{nil, (*authtypes.QueryAccountsRequest)(nil), &authtypes.QueryAccountRequest{}, 1} {
		if err := app.BoundPage(req); err != nil {
			t.Errorf("%T: %v", req, err)
		}
	}
}

// A page of a thousand members of 116 KB each took two gigabytes of a node, for half a
// tally once. An allowance for fees has a bound now, and what a query reads has one, too.
func TestPagesOfLargeMembersAreRefused(t *testing.T) {
	c := chaintest.New(t, chaintest.Validator("v", 1_000_000), chaintest.Fund(10_000_000_000, "a"))
	a := chaintest.Named("a")
	grant := func(to string, names int) (feegrant.FeeAllowanceI, sdk.AccAddress, sdk.Msg) {
		allowance, err := feegrant.NewAllowedMsgAllowance(&feegrant.BasicAllowance{}, make([]string, names))
		if err != nil {
			t.Fatal(err)
		}
		m, err := feegrant.NewMsgGrantAllowance(allowance, a.Address, chaintest.Named(to).Address)
		if err != nil {
			t.Fatal(err)
		}
		return allowance, chaintest.Named(to).Address, m
	}
	_, _, large := grant("large", 58_000)
	if r := check(t, c, later(t, c, a, app.MaxGas, large)); !strings.Contains(r.Log, "allow fewer") {
		t.Errorf("an allowance of 116 KB: %d, %s", r.Code, r.Log)
	}
	_, _, small := grant("small", 100)
	if r := check(t, c, later(t, c, a, 500_000, small)); r.Code != 0 {
		t.Errorf("an allowance of few messages: %s", r.Log)
	}
	if err := c.Do(func(ctx sdk.Context) error {
		for i := range 700 { // as if there were no such bound
			allowance, to, _ := grant(fmt.Sprint("g", i), 58_000)
			if err := c.Grants.GrantAllowance(ctx, a.Address, to, allowance); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for limit, refused := range map[uint64]bool{10: false, 1000: true} {
		req, err := proto.Marshal(&feegrant.QueryAllowancesByGranterRequest{Granter: a.String(), Pagination: &query.PageRequest{Limit: limit}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.Query(t.Context(), &abci.RequestQuery{Path: "/cosmos.feegrant.v1beta1.Query/AllowancesByGranter", Data: req})
		if err != nil || (r.Code != 0) != refused {
			t.Errorf("a page of %d: %d, %.200s: %v", limit, r.Code, r.Log, err)
		}
		if refused && !strings.Contains(r.Log, "by pagination.limit (--page-limit)") {
			t.Errorf("%q says nothing of what to do", r.Log)
		}
	}
}

// Looking a method up takes the square of its name's length: a path of a megabyte took
// 27 s of a processor, before it was known to be none.
func TestLongMethodsAreNotLookedUp(t *testing.T) {
	long := "/cosmos.auth.v1beta1.Query" + strings.Repeat(".a", 1<<19) + "/Accounts"
	if app.IsPaged(long) || !app.IsPaged("/cosmos.auth.v1beta1.Query/Accounts") {
		t.Error("methods with pages")
	}
}
