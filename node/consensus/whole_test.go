package consensus

import (
	"context"
	"slices"
	"testing"

	dbm "github.com/cosmos/cosmos-db"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"cosmossdk.io/log/v2"

	grpctypes "github.com/cosmos/cosmos-sdk/types/grpc"

	"github.com/tally-network/tally/chain/app"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// A devnet's count of all leases saw five entries of an index that had six: a block was being stored, and IAVL's iterators read
// its list of keys before they read its tree. What a block overlaps is asked once more; what may send or try transactions never is.
func TestQueriesReadOneState(t *testing.T) {
	a, err := app.New(log.NewNopLogger(), dbm.NewMemDB(), "test")
	if err != nil {
		t.Fatal(err)
	}
	turns := &turns{App: a}
	for _, c := range []struct {
		method   string
		overlaps bool
		asked    int
	}{
		{"/tally.work.v1.Query/Changed", true, 2},
		{"/tally.work.v1.Query/Changed", false, 1},
		{"/cosmos.tx.v1beta1.Service/BroadcastTx", true, 1},
		{"/cosmos.tx.v1beta1.Service/Simulate", true, 1},
	} {
		var asked []uint64
		handle := turns.wholly(func(_ any, _ context.Context, read func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			r := &workv1.QueryChangedRequest{}
			if err := read(r); err != nil {
				return nil, err
			}
			asked = append(asked, r.Since)
			if r.Since = 0; c.overlaps && len(asked) == 1 { // handlers may bend what they are asked
				turns.stored.Add(1)
			}
			return len(asked), nil
		}, c.method)
		reads := 0
		out, err := handle(nil, t.Context(), func(req any) error {
			reads++
			req.(*workv1.QueryChangedRequest).Since = 7
			return nil
		}, nil)
		if err != nil || out != c.asked || reads != 1 || len(asked) != c.asked || slices.Max(asked) != 7 || slices.Min(asked) != 7 {
			t.Errorf("%s: %v, %v; the request was read %d times, as %v", c.method, out, err, reads, asked)
		}
	}
}

// A query that is asked once more names the height that was the newest, unless it has named one.
func TestHeightOfAQuery(t *testing.T) {
	for _, c := range []struct {
		named  []string
		height int64
		want   []string
	}{
		{nil, 0, nil},
		{nil, 12, []string{"12"}},
		{[]string{"9"}, 12, []string{"9"}},
	} {
		given := metadata.MD{"other": {"x"}}
		given.Set(grpctypes.GRPCBlockHeightHeader, c.named...)
		md, _ := metadata.FromIncomingContext(at(metadata.NewIncomingContext(t.Context(), given), c.height))
		if got := md.Get(grpctypes.GRPCBlockHeightHeader); !slices.Equal(got, c.want) || len(md.Get("other")) != 1 {
			t.Errorf("named %v, newest %d: asks at %v", c.named, c.height, md)
		}
		if got := given.Get(grpctypes.GRPCBlockHeightHeader); !slices.Equal(got, c.named) {
			t.Errorf("the query's own words became %v", got)
		}
	}
}
