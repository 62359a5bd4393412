package consensus_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	cmttypes "github.com/cometbft/cometbft/types"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	sdk "github.com/cosmos/cosmos-sdk/types"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/coin"
	beaconv1 "github.com/tally-network/tally/gen/tally/beacon/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/node/consensus"
)

const tally = 1_000_000

var alice, bob = chaintest.Named("alice"), chaintest.Named("bob")

// network is a set of validators in this process.
type network struct {
	configs []consensus.Config
	nodes   []*consensus.Node
}

// newNetwork describes n validators in dir; alice and bob have money. The options see a genesis that has the validators.
func newNetwork(t testing.TB, dir string, n int, options ...chaintest.Option) *network {
	t.Helper()
	g := chaintest.NewGenesis(chaintest.Fund(1_000*tally, alice.Name, bob.Name), chaintest.Challenger("challenger", 100*tally))
	g.Validators, g.Keys = nil, nil
	g.Time = time.Now()
	net := &network{nodes: make([]*consensus.Node, n)}
	var peers []string
	for i := range n {
		c := consensus.Config{
			Dir: filepath.Join(dir, fmt.Sprint("v", i)), Name: fmt.Sprint("v", i),
			CommitTimeout: 100 * time.Millisecond, EmptyInterval: 200 * time.Millisecond,
		}
		id, err := consensus.LoadIdentity(c.Dir)
		if err != nil {
			t.Fatal(err)
		}
		if c.Listen.P2P, err = consensus.FreeAddr(); err != nil {
			t.Fatal(err)
		}
		c.Peers = append(c.Peers, peers...)
		peers = append(peers, id.NodeID+"@"+c.Listen.P2P)
		for j := range net.configs { // which this one dials
			net.configs[j].Peers = append(net.configs[j].Peers, id.NodeID)
		}
		g.Validators = append(g.Validators, app.Validator{
			Account: chaintest.Named(c.Name).String(), ConsensusKey: id.ConsensusKey, Votes: 1,
		})
		c.Provers = []ed25519.PrivateKey{chaintest.Named(c.Name).VRF}
		g.Keys = append(g.Keys, beaconv1.Key{Account: chaintest.Named(c.Name).String(), Key: chaintest.Named(c.Name).VRFKey()})
		net.configs = append(net.configs, c)
	}
	for _, o := range options {
		o(&g)
	}
	if _, err := os.Stat(filepath.Join(net.configs[0].Dir, "config", "genesis.json")); err != nil {
		doc, err := g.Doc()
		if err != nil {
			t.Fatal(err)
		}
		for i := range net.configs {
			net.configs[i].Genesis = doc
		}
	}
	return net
}

// start starts all nodes at once.
func (net *network) start(t testing.TB) {
	t.Helper()
	var wg sync.WaitGroup
	for i, c := range net.configs {
		wg.Go(func() {
			var err error
			if net.nodes[i], err = consensus.Start(context.Background(), c); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	t.Cleanup(func() { net.stop(t) })
	if t.Failed() {
		t.FailNow()
	}
}

// stop stops all nodes that run.
func (net *network) stop(t testing.TB) {
	t.Helper()
	var wg sync.WaitGroup
	for i, n := range net.nodes {
		if net.nodes[i] = nil; n != nil {
			wg.Go(func() {
				if err := n.Stop(); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
}

// until waits for a condition that the network must reach.
func until(t testing.TB, what string, reached func() bool) {
	t.Helper()
	within(t, time.Minute, what, reached)
}

// within is until for what must happen sooner.
func within(t testing.TB, most time.Duration, what string, reached func() bool) {
	t.Helper()
	for deadline := time.Now().Add(most); !reached(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %s: no %s", most, what)
		}
	}
}

func (net *network) waitHeight(t testing.TB, h int64) {
	t.Helper()
	for i, n := range net.nodes {
		until(t, fmt.Sprintf("height %d at node %d", h, i), func() bool { return n.Height() >= h })
	}
}

// appHash returns the app hash after block h at node i: it stands in block h+1.
func (net *network) appHash(t testing.TB, i int, h int64) string {
	t.Helper()
	next := h + 1
	until(t, fmt.Sprintf("block %d at node %d", next, i), func() bool { return net.nodes[i].Height() >= next })
	b, err := net.nodes[i].Client().Block(context.Background(), &next)
	if err != nil {
		t.Fatal(err)
	}
	return b.Block.AppHash.String()
}

func dial(t testing.TB, n *consensus.Node) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(n.Addrs().GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func balance(t testing.TB, n *consensus.Node, a sdk.AccAddress) uint64 {
	t.Helper()
	r, err := banktypes.NewQueryClient(dial(t, n)).Balance(context.Background(), &banktypes.QueryBalanceRequest{
		Address: a.String(), Denom: coin.Denom,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r.Balance.Amount.Uint64()
}

const transferFee = 20 // utally for 200 000 gas

// transfer signs a transfer with the account's numbers as node n knows them.
func transfer(t testing.TB, n *consensus.Node, chainID string, from, to chaintest.Account, amount uint64) cmttypes.Tx {
	t.Helper()
	r, err := authtypes.NewQueryClient(dial(t, n)).AccountInfo(context.Background(),
		&authtypes.QueryAccountInfoRequest{Address: from.String()})
	if err != nil {
		t.Fatal(err)
	}
	tx, err := n.Encoding().Sign(app.Signer{
		ChainID: chainID, Key: from.Key, Number: r.Info.AccountNumber, Sequence: r.Info.Sequence,
	}, 200_000, transferFee, banktypes.NewMsgSend(from.Address, to.Address, coin.Of(amount)))
	if err != nil {
		t.Fatal(err)
	}
	return tx
}
