package consensus_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	rpchttp "github.com/cometbft/cometbft/rpc/client/http"
	jsonrpc "github.com/cometbft/cometbft/rpc/jsonrpc/client"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cosmos/cosmos-sdk/client/grpc/cmtservice"
	"github.com/cosmos/cosmos-sdk/types/query"
	txtypes "github.com/cosmos/cosmos-sdk/types/tx"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"

	"github.com/tally-network/tally/node/consensus"
)

// One byte of a key was enough for a whole store, and a page had no end.
func TestQueriesReadNoWholeStores(t *testing.T) {
	network := newNetwork(t, t.TempDir(), 1)
	network.start(t)
	network.waitHeight(t, 3)
	n := network.nodes[0]
	get := func(format string, args ...any) string {
		res, err := http.Get("http://" + fmt.Sprintf(format, args...))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	conn := dial(t, n)
	service := cmtservice.NewServiceClient(conn)
	for _, path := range []string{"/store/bank/subspace", "store/bank/subspace", "/store/acc/subspace", "/store/bank/key/", "/app/version", "app/simulate", "/p2p/filter/id/x", "/custom/x"} {
		if text := get("%s/abci_query?path=%%22%s%%22&data=0x02", n.Addrs().RPC, path); !strings.Contains(text, "is not answered") {
			t.Errorf("RPC answers %s: %.200s", path, text)
		}
		if r, err := service.ABCIQuery(context.Background(), &cmtservice.ABCIQueryRequest{Path: path, Data: []byte{2}}); err == nil && r.Code == 0 {
			t.Errorf("gRPC answers %s with %d bytes", path, len(r.Value))
		}
	}
	costly := n.Costly()
	if len(costly) < 20 {
		t.Fatalf("only these are costly: %v", costly)
	}
	for method, limited := range costly {
		if !limited {
			t.Errorf("REST answers at once: %s", method)
		}
	}
	if text := get("%s/abci_query?path=%%22/store/acc/key%%22&data=0x00", n.Addrs().RPC); !strings.Contains(text, `"code":0`) {
		t.Errorf("RPC does not answer for one key: %s", text)
	}
	accounts := authtypes.NewQueryClient(conn)
	if _, err := accounts.Accounts(context.Background(), &authtypes.QueryAccountsRequest{Pagination: &query.PageRequest{Offset: 1 << 40}}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("gRPC skips any number of members, or does not say what is wrong: %v", err)
	}
	counted, err := accounts.Accounts(context.Background(), &authtypes.QueryAccountsRequest{Pagination: &query.PageRequest{Limit: 1, CountTotal: true}})
	if err != nil || len(counted.Accounts) != 1 || counted.Pagination.Total != 0 || counted.Pagination.NextKey == nil {
		t.Errorf("gRPC counts a whole list, or refuses who asks for that: %v, %v", counted, err)
	}
	// As wallets ask.
	if text := get("%s/cosmos/auth/v1beta1/accounts?pagination.limit=1&pagination.count_total=true", n.Addrs().REST); !strings.Contains(text, `"accounts"`) || !strings.Contains(text, `"total":"0"`) {
		t.Errorf("REST counts a whole list, or refuses who asks for that: %.200s", text)
	}
	if _, err := txtypes.NewServiceClient(conn).TxDecodeAmino(context.Background(), &txtypes.TxDecodeAminoRequest{AminoBinary: []byte{1}}); status.Code(err) != codes.Unimplemented {
		t.Errorf("gRPC decodes amino, whose keys nest without a bound: %v", err)
	}
	if _, err := txtypes.NewServiceClient(conn).TxEncodeAmino(context.Background(), &txtypes.TxEncodeAminoRequest{AminoJson: "{}"}); status.Code(err) != codes.Unimplemented {
		t.Errorf("gRPC encodes amino: %v", err)
	}
	if r, err := accounts.Accounts(context.Background(), &authtypes.QueryAccountsRequest{Pagination: &query.PageRequest{Limit: 1 << 62}}); err != nil || len(r.Accounts) < 2 {
		t.Errorf("a page: %v, %v", r, err)
	}
}

// A websocket kept a hundred replies of any size. Our own clients subscribe, and ask
// over HTTP.
func TestWebsocketsOfStrangersOnlySubscribe(t *testing.T) {
	network := newNetwork(t, t.TempDir(), 1)
	network.start(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	network.nodes[0].ServeElsewhere(l)
	rpc, err := rpchttp.New("http://"+l.Addr().String(), "/websocket")
	if err != nil {
		t.Fatal(err)
	}
	if err := rpc.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rpc.Stop() }()
	headers, err := rpc.Subscribe(t.Context(), "me", "tm.event='NewBlockHeader'", 16)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		select {
		case <-headers:
		case <-time.After(time.Minute):
			t.Fatal("no headers")
		}
	}
	if _, err := rpc.Status(t.Context()); err != nil {
		t.Error(err)
	}
	open := func() (*jsonrpc.WSClient, error) {
		ws, err := jsonrpc.NewWS("http://"+l.Addr().String(), "/websocket", jsonrpc.MaxReconnectAttempts(0))
		if err != nil {
			return nil, err
		}
		return ws, ws.Start()
	}
	for i := 1; ; i++ { // the client has one
		ws, err := open()
		if err != nil {
			if i != consensus.WebsocketsOfAddress {
				t.Errorf("an address has %d websockets, want %d: %v", i, consensus.WebsocketsOfAddress, err)
			}
			return
		}
		defer func() { _ = ws.Stop() }()
		if i == consensus.WebsocketsOfAddress {
			t.Fatalf("an address has more than %d websockets", i)
		}
		if err := ws.Call(t.Context(), "block", map[string]any{"height": "1"}); err != nil {
			t.Fatal(err)
		}
		if r := <-ws.ResponsesCh; r.Error == nil || !strings.Contains(r.Error.Error(), "ask over HTTP") {
			t.Errorf("a stranger's websocket answers: %v", r)
		}
	}
}
