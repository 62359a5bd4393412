package app_test

import (
	"testing"

	"github.com/cosmos/cosmos-sdk/types/query"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/tally-network/tally/chain/app"
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
