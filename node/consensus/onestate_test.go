package consensus

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	dbm "github.com/cosmos/cosmos-db"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"cosmossdk.io/log/v2"

	grpctypes "github.com/cosmos/cosmos-sdk/types/grpc"

	"github.com/tally-network/tally/chain/app"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// A devnet's count of all leases saw five entries of an index that had six: a block was being stored, and IAVL's iterators read
// its list of keys before they read its tree. What a block overlaps is asked once more; what may send or try transactions never is.
func TestQueriesReadOneState(t *testing.T) {
	a, err := app.New(log.NewNopLogger(), dbm.NewMemDB(), "test")
	if err != nil {
		t.Fatal(err)
	}
	turns := newTurns(a)
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
		handle := turns.oneStateHandler(func(_ any, _ context.Context, read func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
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
		{[]string{"0"}, 12, []string{"12"}},
		{[]string{"9", "8"}, 12, []string{"12"}},
		{[]string{"-3"}, 12, []string{"-3"}},
		{[]string{"newest"}, 12, []string{"newest"}},
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

// headers keeps what a handler of gRPC sets.
type headers struct{ set metadata.MD }

func (h *headers) Method() string               { return "" }
func (h *headers) SetTrailer(metadata.MD) error { return nil }
func (h *headers) SetHeader(md metadata.MD) error {
	h.set = metadata.Join(h.set, md)
	return nil
}
func (h *headers) SendHeader(md metadata.MD) error { return h.SetHeader(md) }

// The reply to a query that was asked twice names the one height that it was answered at.
func TestReplyNamesOneHeight(t *testing.T) {
	a, err := app.New(log.NewNopLogger(), dbm.NewMemDB(), "test")
	if err != nil {
		t.Fatal(err)
	}
	turns, reply := newTurns(a), &headers{}
	height := 40
	handle := turns.oneStateHandler(func(_ any, ctx context.Context, read func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		if err := read(&workv1.QueryChangedRequest{}); err != nil {
			return nil, err
		}
		err := grpc.SetHeader(ctx, metadata.Pairs(grpctypes.GRPCBlockHeightHeader, strconv.Itoa(height)))
		height--
		turns.stored.Add(1)
		return nil, err
	}, "/tally.work.v1.Query/Changed")
	ctx := grpc.NewContextWithServerTransportStream(t.Context(), reply)
	if _, err := handle(nil, ctx, func(any) error { return nil }, nil); err != nil {
		t.Fatal(err)
	}
	if got := reply.set.Get(grpctypes.GRPCBlockHeightHeader); !slices.Equal(got, []string{"39"}) {
		t.Errorf("the reply names heights %v", got)
	}
}

// storedBlocks returns an application that has stored so many blocks.
func storedBlocks(t *testing.T, n int64) *app.App {
	c := chaintest.New(t)
	for c.App.LastBlockHeight() < n {
		c.NextBlock(time.Second)
	}
	return c.App
}

// Who is gone, or asks for a state that no block changes now, is asked once.
func TestAskedOnceForGood(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		text  string
		ctx   context.Context
		named int64
		asked int
	}{
		{"the newest state", t.Context(), 0, 2},
		{"the newest state by its height", t.Context(), 3, 2},
		{"an older state", t.Context(), 2, 1},
		{"nobody waits", gone, 0, 1},
	} {
		turns, asked := newTurns(storedBlocks(t, 3)), 0
		turns.oneState(c.ctx, c.named, func(int64) { asked++; turns.stored.Add(1) })
		if asked != c.asked {
			t.Errorf("%s: asked %d times", c.text, asked)
		}
	}
}

// abci_query with a path of gRPC or of a store, over whichever server, reads one state. What may try transactions is asked once.
func TestABCIQueriesReadOneState(t *testing.T) {
	for _, c := range []struct {
		path  string
		query bool
	}{
		{"/tally.work.v1.Query/Changed", true},
		{"/store/work/key", true},
		{"store/work/key", true},
		{"/app/simulate", false},
		{"app/version", false},
		{"/cosmos.tx.v1beta1.Service/Simulate", false},
	} {
		if isQuery(c.path) != c.query {
			t.Errorf("%s: query is %v", c.path, !c.query)
		}
	}
	turns := newTurns(storedBlocks(t, 3))
	r, err := turns.Query(t.Context(), &abci.RequestQuery{Path: "/tally.work.v1.Query/Changed"})
	if err != nil || r.Code != 0 || r.Height != 3 {
		t.Errorf("%v, %v", r, err)
	}
}

// While a block is stored the application may know it already, and what is asked once must not fail for that.
func TestServicesAnswerWhileABlockIsStored(t *testing.T) {
	c := chaintest.New(t)
	c.NextBlock(time.Second)
	c.NextBlock(time.Second)
	turns := newTurns(c.App)
	c.NextBlock(time.Second) // of which turns has not heard
	r, err := turns.Query(t.Context(), &abci.RequestQuery{Path: "/cosmos.base.node.v1beta1.Service/Status"})
	if err != nil || strings.Contains(r.Log, "height") {
		t.Errorf("%+v, %v", r, err)
	}
	handle := turns.oneStateHandler(func(_ any, ctx context.Context, _ func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		return heightOf(ctx), nil
	}, "/cosmos.tx.v1beta1.Service/GetTx")
	if named, err := handle(nil, t.Context(), nil, nil); err != nil || named != turns.LastBlockHeight() {
		t.Errorf("asked at %v, %v", named, err)
	}
}
