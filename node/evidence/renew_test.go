package evidence

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cosmossdk.io/log/v2"
	abci "github.com/cometbft/cometbft/abci/types"
	cmtbytes "github.com/cometbft/cometbft/libs/bytes"
	cmtlog "github.com/cometbft/cometbft/libs/log"
	"github.com/cometbft/cometbft/p2p"
	cmtcrypto "github.com/cometbft/cometbft/proto/tendermint/crypto"
	cmtversion "github.com/cometbft/cometbft/proto/tendermint/version"
	ctypes "github.com/cometbft/cometbft/rpc/core/types"
	rpcserver "github.com/cometbft/cometbft/rpc/jsonrpc/server"
	rpctypes "github.com/cometbft/cometbft/rpc/jsonrpc/types"
	cmttypes "github.com/cometbft/cometbft/types"
	"github.com/cometbft/cometbft/version"
	dbm "github.com/cosmos/cosmos-db"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cosmos/cosmos-sdk/store/v2/rootmulti"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/format/bundle"
	blockv1 "github.com/tally-network/tally/gen/tally/block/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/node/client"
)

// people are validators whose keys a test has.
type people struct {
	set  *cmttypes.ValidatorSet
	keys []cmttypes.PrivValidator
}

func newPeople(n int) people {
	set, keys := cmttypes.RandValidatorSet(n, 10)
	return people{set, keys}
}

// among returns p and q as one set, sorted as CometBFT wants.
func (p people) among(q people) people {
	keys := append(append([]cmttypes.PrivValidator{}, p.keys...), q.keys...)
	var all []*cmttypes.Validator
	for _, v := range append(append([]*cmttypes.Validator{}, p.set.Validators...), q.set.Validators...) {
		all = append(all, cmttypes.NewValidator(v.PubKey, v.VotingPower))
	}
	set := cmttypes.NewValidatorSet(all)
	sorted := make([]cmttypes.PrivValidator, len(keys))
	for _, k := range keys {
		pub, _ := k.GetPubKey()
		at, _ := set.GetByAddress(pub.Address())
		sorted[at] = k
	}
	return people{set, sorted}
}

// node answers as a node of a chain of one settled order that these people have signed, and lies as told.
type node struct {
	workv1.UnimplementedQueryServer

	chain        string
	settlement   []byte
	accumulator  []byte
	proof        *cmtcrypto.ProofOps
	block        *cmttypes.LightBlock
	at           func(height int64) *cmttypes.LightBlock // that it gives; nil: block, whatever is asked for
	noHeader     bool
	pruned       bool  // it has the settlement's place alone
	most         int64 // validators that it says there are, more than it has
	stateOfBlock int64
}

// newState returns a node whose newest block is yet to be made, and the state that this commits to.
func newState(t *testing.T, chain string, settlement []byte, height int64) (*node, []byte) {
	t.Helper()
	s := rootmulti.NewStore(dbm.NewMemDB(), log.NewNopLogger())
	key := storetypes.NewKVStoreKey(wire.RecordStore)
	s.MountStoreWithDB(key, storetypes.StoreTypeIAVL, nil)
	if err := s.LoadLatestVersion(); err != nil {
		t.Fatal(err)
	}
	var all canon.Accumulator
	all.Append(wire.SettlementLeaf(settlement))
	n := &node{chain: chain, settlement: settlement, accumulator: canon.Marshal(&all), stateOfBlock: height - 1}
	s.GetKVStore(key).Set(wire.AccumulatorKey(), n.accumulator)
	id := s.Commit()
	q, err := s.Query(&storetypes.RequestQuery{Path: "/" + wire.RecordStore + "/key", Data: wire.AccumulatorKey(), Height: id.Version, Prove: true})
	if err != nil {
		t.Fatal(err)
	}
	n.proof = q.ProofOps
	return n, id.Hash
}

func newNode(t *testing.T, chain string, by people, settlement []byte, height int64) *node {
	t.Helper()
	n, state := newState(t, chain, settlement, height)
	some := cmtbytes.HexBytes(make([]byte, 32))
	parts := cmttypes.PartSetHeader{Total: 1, Hash: some}
	h := &cmttypes.Header{
		Version: cmtversion.Consensus{Block: version.BlockProtocol}, ChainID: chain, Height: height, Time: time.Unix(height, 0).UTC(),
		LastBlockID: cmttypes.BlockID{Hash: some, PartSetHeader: parts}, LastCommitHash: some, DataHash: some, ConsensusHash: some,
		ValidatorsHash: by.set.Hash(), NextValidatorsHash: by.set.Hash(), AppHash: state, LastResultsHash: some, EvidenceHash: some,
		ProposerAddress: by.set.Validators[0].Address,
	}
	votes := cmttypes.NewVoteSet(chain, height, 0, 2, by.set)
	commit, err := cmttypes.MakeExtCommit(cmttypes.BlockID{Hash: h.Hash(), PartSetHeader: parts}, height, 0, votes, by.keys, time.Unix(2, 0).UTC(), false)
	if err != nil {
		t.Fatal(err)
	}
	n.block = &cmttypes.LightBlock{SignedHeader: &cmttypes.SignedHeader{Header: h, Commit: commit.ToCommit()}, ValidatorSet: by.set}
	return n
}

func (n *node) Settlement(context.Context, *workv1.QuerySettlementRequest) (*workv1.QuerySettlementResponse, error) {
	if n.pruned {
		return nil, status.Error(codes.NotFound, "the order was settled, and its lease is pruned")
	}
	return &workv1.QuerySettlementResponse{Value: n.settlement}, nil
}

func (n *node) Path(context.Context, *workv1.QueryPathRequest) (*workv1.QueryPathResponse, error) {
	return &workv1.QueryPathResponse{Count: 1}, nil
}

// clock tells the newest block of a node.
type clock struct {
	blockv1.UnimplementedQueryServer
	of *node
}

func (c *clock) Now(context.Context, *blockv1.QueryNowRequest) (*blockv1.QueryNowResponse, error) {
	return &blockv1.QueryNowResponse{Height: c.of.block.Height + 1, TimeMs: 1}, nil
}

func (n *node) blockAt(height int64) *cmttypes.LightBlock {
	if n.at == nil {
		return n.block
	}
	return n.at(height)
}

// dial serves n on loopback, and returns a client of it.
func (n *node) dial(t *testing.T) *client.Client {
	t.Helper()
	mux := http.NewServeMux()
	rpcserver.RegisterRPCFuncs(mux, map[string]*rpcserver.RPCFunc{
		"status": rpcserver.NewRPCFunc(func(*rpctypes.Context) (*ctypes.ResultStatus, error) {
			return &ctypes.ResultStatus{NodeInfo: p2p.DefaultNodeInfo{Network: n.chain}}, nil
		}, ""),
		"abci_query": rpcserver.NewRPCFunc(func(_ *rpctypes.Context, _ string, data cmtbytes.HexBytes, _ int64, _ bool) (*ctypes.ResultABCIQuery, error) {
			return &ctypes.ResultABCIQuery{Response: abci.ResponseQuery{Key: data, Value: n.accumulator, ProofOps: n.proof, Height: n.stateOfBlock}}, nil
		}, "path,data,height,prove"),
		"commit": rpcserver.NewRPCFunc(func(_ *rpctypes.Context, h *int64) (*ctypes.ResultCommit, error) {
			if n.noHeader {
				return &ctypes.ResultCommit{}, nil
			}
			b := n.blockAt(*h)
			return ctypes.NewResultCommit(b.Header, b.Commit, true), nil
		}, "height"),
		"validators": rpcserver.NewRPCFunc(func(_ *rpctypes.Context, h *int64, _, _ *int) (*ctypes.ResultValidators, error) {
			all := n.blockAt(*h).ValidatorSet.Validators
			if n.most > 0 {
				all = nil
				for range 1000 {
					all = append(all, n.block.ValidatorSet.Validators[0])
				}
			}
			return &ctypes.ResultValidators{BlockHeight: *h, Validators: all, Total: len(n.blockAt(*h).ValidatorSet.Validators) + int(n.most)}, nil
		}, "height,page,per_page"),
	}, cmtlog.NewNopLogger())
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	workv1.RegisterQueryServer(g, n)
	blockv1.RegisterQueryServer(g, &clock{of: n})
	go func() { _ = g.Serve(l) }()
	t.Cleanup(g.Stop)
	c, err := client.Dial(t.Context(), client.Endpoints{RPC: web.URL, GRPC: l.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// anchored writes a bundle that has n's anchor, and nothing else.
func (n *node) anchored(t *testing.T) string {
	t.Helper()
	m, err := n.block.ToProto()
	if err != nil {
		t.Fatal(err)
	}
	block, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	proof, err := n.proof.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	a := anchorage{entryBlock: block, entryProof: proof, entryAccumulator: n.accumulator, entryPosition: canon.Marshal(&canon.Position{}), entrySettlement: n.settlement}
	name := filepath.Join(t.TempDir(), "proof.bundle")
	if err := write(name, a.entries()); err != nil {
		t.Fatal(err)
	}
	return name
}

// What a node says replaces an anchor only if the validators that anchored the bundle, or those
// that the caller believes, have signed it. Whatever else it says leaves the bundle as it is.
func TestNodesThatLie(t *testing.T) {
	const chain = "tally-1"
	old, young := newPeople(2), newPeople(1)
	settlement := canon.Marshal(&job.Settlement{Price: 7})
	believe := func(p people) func(Trust) bool { return Trust(p.set.Hash()).Is }
	for name, c := range map[string]struct {
		of       string
		by       people
		settled  []byte
		height   int64
		bend     func(*node)
		believed func(Trust) bool
		now      int64  // seconds; 0: 1000
		want     string // of the error
	}{
		"the same people":        {by: old, height: 200},
		"the same block":         {by: old, height: 100},
		"a third and more stay":  {by: old.among(young), height: 200},
		"a set that is believed": {by: young, height: 200, believed: believe(young)},
		"an invented chain":      {by: young, height: 200, want: "does not follow from block 100"},
		"long after":             {by: old, height: 200, now: 100 + 16*3600, want: "tally trust pin"},
		"long after, believed":   {by: young, height: 200, now: 100 + 16*3600, believed: believe(young)},
		"another is believed":    {by: young, height: 200, believed: believe(old), want: "does not follow from block 100"},
		"an older block":         {by: old, height: 5, want: "the node is at 5"},
		"another chain":          {of: "tally-2", by: old, height: 200, want: "the node of tally-2"},
		"another settlement":     {by: old, settled: canon.Marshal(&job.Settlement{Price: 8}), height: 200, want: "otherwise than the bundle"},
		"pruned by the chain":    {by: old, height: 200, bend: func(n *node) { n.pruned = true }},
		"no header":              {by: old, height: 200, bend: func(n *node) { n.noHeader = true }, want: "gives none"},
		"validators without end": {by: old, height: 200, bend: func(n *node) { n.most = 1 << 40 }, want: "more than 100 on a page"},
		"a state yet to come":    {by: old, height: 200, bend: func(n *node) { n.stateOfBlock = 1 << 40 }, want: "its newest block is 201"},
		"a proof of nothing":     {by: old, height: 200, bend: func(n *node) { n.accumulator = canon.Marshal(&canon.Accumulator{}) }, want: "what the node gives"},
	} {
		t.Run(name, func(t *testing.T) {
			file := newNode(t, chain, old, settlement, 100).anchored(t)
			before, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if c.of == "" {
				c.of = chain
			}
			if c.settled == nil {
				c.settled = settlement
			}
			if c.now == 0 {
				c.now = 1000
			}
			roots := &Roots{Named: c.believed, By: "--trust", Home: t.TempDir(), Now: func() time.Time { return time.Unix(c.now, 0) }}
			n := newNode(t, c.of, c.by, c.settled, c.height)
			if c.bend != nil {
				c.bend(n)
			}
			got, err := Renew(t.Context(), n.dial(t), file, file, roots)
			after, also := os.ReadFile(file)
			if also != nil {
				t.Fatal(also)
			}
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || !bytes.Equal(before, after) {
					t.Errorf("%v, want %q; the bundle is as before: %v", err, c.want, bytes.Equal(before, after))
				}
				return
			}
			if err != nil || got != Trust(c.by.set.Hash()) {
				t.Fatalf("signed by %v: %v", got, err)
			}
			b, err := bundle.Open(bytes.NewReader(after), int64(len(after)))
			if err != nil {
				t.Fatal(err)
			}
			if a, err := checkAnchor(b.Read, got.Is); err != nil || a.block.Height != c.height {
				t.Errorf("the renewed anchor: %v", err)
			}
		})
	}
}

// A file beside a bundle, or a link, is not in the way of writing it.
func TestWriteSparesOthers(t *testing.T) {
	dir := t.TempDir()
	mine := filepath.Join(dir, "mine")
	if err := os.WriteFile(mine, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(mine, filepath.Join(dir, "p.tmp")); err != nil {
		t.Fatal(err)
	}
	if err := write(filepath.Join(dir, "p"), []bundle.Content{bundle.Bytes("a", []byte("x"))}); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(mine); err != nil || string(b) != "mine" {
		t.Errorf("%q, %v", b, err)
	}
}
