package consume

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cosmos/gogoproto/grpc"

	"github.com/cosmos/cosmos-sdk/types/query"

	"github.com/tally-network/tally/core/canon"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
)

// Orders returns the orders of a consumer, or all for "", oldest first, to the
// most, as a node tells them.
func Orders(ctx context.Context, node grpc.ClientConn, consumer string, most int) ([]marketv1.BookedOrder, error) {
	var out []marketv1.BookedOrder
	q := &marketv1.QueryOrdersRequest{Consumer: consumer, Pagination: &query.PageRequest{}}
	for {
		r, err := marketv1.NewQueryClient(node).Orders(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("orders: %w", err)
		}
		out = append(out, r.Orders...)
		if len(out) >= most {
			return out[:most], nil
		}
		if r.Pagination == nil || len(r.Pagination.NextKey) == 0 {
			return out, nil
		}
		if len(r.Orders) == 0 {
			return nil, errors.New("orders: the node gives pages without orders: name another")
		}
		q.Pagination = &query.PageRequest{Key: r.Pagination.NextKey}
	}
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
		return canon.Hash{}, fmt.Errorf("no order begins with %q", text)
	case 1:
		return canon.ParseHash(found[0])
	}
	return canon.Hash{}, fmt.Errorf("%d orders begin with %q: give more digits", len(found), text)
}

// StatusName is what people call a status.
func StatusName(s marketv1.Status) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "STATUS_"))
}
