package consensus_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/cometbft/cometbft/crypto/ed25519"
	"github.com/cometbft/cometbft/libs/protoio"
	"github.com/cometbft/cometbft/p2p"
	p2pconn "github.com/cometbft/cometbft/p2p/conn"

	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/node/consensus"
)

// Strangers hold all places that CometBFT has for who connects. Validators that start
// again are let in nevertheless, since the others expect them.
func TestStrangersDoNotKeepValidatorsApart(t *testing.T) {
	net := newNetwork(t, t.TempDir(), 4)
	net.start(t)
	net.waitHeight(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	surround := func(n *consensus.Node) {
		_, addr, _ := strings.Cut(n.Addrs().P2P, "@")
		for i := range 50 { // CometBFT lets 40 in
			go hold(ctx, addr, fmt.Sprintf("127.0.%d.1", 1+i))
		}
	}
	for _, n := range net.nodes {
		surround(n)
	}
	until(t, "strangers at every node", func() bool {
		for _, n := range net.nodes {
			if n.Peers() < 40 {
				return false
			}
		}
		return true
	})
	for _, i := range []int{3, 2} { // without both there are no blocks
		if err := net.nodes[i].Stop(); err != nil {
			t.Fatal(err)
		}
		n, err := consensus.Start(t.Context(), net.configs[i])
		if err != nil {
			t.Fatal(err)
		}
		net.nodes[i] = n
		surround(n)
	}
	before := net.nodes[0].Height()
	until(t, "blocks of all", func() bool {
		for _, n := range net.nodes {
			if n.Height() < before+5 {
				return false
			}
		}
		return true
	})
}

// Strangers of one network of addresses took every place that a node has for nodes that
// it does not name, and whoever wanted to follow the chain was kept out.
func TestStrangersOfOneNetworkLeavePlaces(t *testing.T) {
	n := newNetwork(t, t.TempDir(), 1)
	n.start(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, addr, _ := strings.Cut(n.nodes[0].Addrs().P2P, "@")
	for i := range 50 {
		go hold(ctx, addr, fmt.Sprintf("127.0.1.%d", 1+i))
	}
	until(t, "strangers", func() bool { return n.nodes[0].Peers() >= 4 })
	follower := n.follow(t)
	until(t, "blocks of one who follows", func() bool { return follower.Height() >= n.nodes[0].Height() && follower.Height() > 2 })
}

// Strangers that begin messages and never end them: a node kept 100 MB of each for each of them.
func TestMessagesOfStrangersAreBounded(t *testing.T) {
	n := newNetwork(t, t.TempDir(), 1)
	n.start(t)
	for reactor, most := range map[string]int{"BLOCKSYNC": 8 << 20, "STATESYNC": 1 << 10, "CONSENSUS": 1 << 20, "MEMPOOL": 1 << 20, "EVIDENCE": 1 << 20} {
		if got := n.nodes[0].Capacity(reactor); got > most {
			t.Errorf("%s takes %d bytes, want %d at most", reactor, got, most)
		}
	}
}

// follow starts a node that no validator names.
func (net *network) follow(t *testing.T) *consensus.Node {
	c := net.configs[0]
	c.Dir, c.Name, c.Listen, c.Peers = t.TempDir(), "follower", consensus.Addrs{}, []string{net.nodes[0].Addrs().P2P}
	n, err := consensus.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Stop() })
	return n
}

// hold keeps a place among the peers of a node, under a key of its own.
func hold(ctx context.Context, addr, from string) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: time.Second}
	for ctx.Err() == nil {
		c, err := dialer.DialContext(ctx, "tcp", addr)
		if err == nil {
			stop := context.AfterFunc(ctx, func() { _ = c.Close() })
			greet(c)
			stop()
			_ = c.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// greet says what every node says first, and then nothing, until c is closed.
func greet(c net.Conn) {
	key := ed25519.GenPrivKey()
	s, err := p2pconn.MakeSecretConnection(c, key)
	if err != nil {
		return
	}
	info := p2p.DefaultNodeInfo{
		ProtocolVersion: p2p.ProtocolVersion{P2P: 9, Block: 11}, DefaultNodeID: p2p.PubKeyToID(key.PubKey()), ListenAddr: "127.0.0.1:1",
		Network: chaintest.ChainID, Version: "0.39.4", Channels: []byte{0x30}, Moniker: "stranger",
	}
	go func() { _, _ = protoio.NewDelimitedWriter(s).WriteMsg(info.ToProto()) }()
	for b := make([]byte, 1<<10); err == nil; {
		_, err = s.Read(b)
	}
}
