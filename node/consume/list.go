package consume

import (
	"context"
	"fmt"
	"strings"

	"github.com/cosmos/gogoproto/grpc"

	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/core/canon"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	"github.com/tally-network/tally/node/client"
)

// Orders returns the orders of a consumer, or all for "", oldest first, to the
// most, as a node tells them.
func Orders(ctx context.Context, node grpc.ClientConn, consumer string, most int) ([]marketv1.BookedOrder, error) {
	return client.Pages("orders", most, func(p *query.PageRequest) ([]marketv1.BookedOrder, *query.PageResponse, error) {
		r, err := marketv1.NewQueryClient(node).Orders(ctx, &marketv1.QueryOrdersRequest{Consumer: consumer, Pagination: p})
		return r.GetOrders(), r.GetPagination(), err
	})
}

// digits of a whole id, and how few of them may name an order.
const (
	wholeID  = 64
	leastID  = 4
	maxFound = 1 << 16 // orders searched for the beginning of an id
)

// Find returns the order whose id begins with text: of a consumer's, or of all
// for "". A whole id is not looked up.
func Find(ctx context.Context, node grpc.ClientConn, consumer, text string) (canon.Hash, error) {
	if len(text) == wholeID {
		return canon.ParseHash(text)
	}
	if len(text) < leastID {
		return canon.Hash{}, fmt.Errorf("order %q: give at least %d digits of its id", text, leastID)
	}
	all, err := Orders(ctx, node, consumer, maxFound)
	if err != nil {
		return canon.Hash{}, err
	}
	var found []string
	for i := range all {
		if strings.HasPrefix(all[i].Id, strings.ToLower(text)) {
			found = append(found, all[i].Id)
		}
	}
	switch len(found) {
	case 0:
		return canon.Hash{}, fmt.Errorf("no order of this account begins with %q: tally order ls shows those that there are", text)
	case 1:
		return canon.ParseHash(found[0])
	}
	return canon.Hash{}, fmt.Errorf("%d orders begin with %q: give more digits", len(found), text)
}
