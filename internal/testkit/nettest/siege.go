package nettest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/internal/testkit/barehost"
	"github.com/tally-network/tally/internal/testkit/spam"
	"github.com/tally-network/tally/node/leases"
)

// Blobs answers for a role in place of its store.
type Blobs func(ctx context.Context, c cid.Cid) ([]byte, error)

// Block implements p2p.Blocks.
func (b Blobs) Block(ctx context.Context, c cid.Cid) ([]byte, error) { return b(ctx, c) }

// Lie makes a role answer everybody with what blobs says, from now on. It serves its
// leases by then, or its store answers again when it begins to.
func (n *Network) Lie(name string, blobs Blobs) {
	n.Member(name).Env.Host.ServeBlocks(blobs, func(peer.ID, canon.Hash, cid.Cid) bool { return true })
}

// Siege is strangers that trouble the peers of some roles.
type Siege struct {
	stop func()
	done sync.WaitGroup
}

// requests are the protocols whose requests a siege sends halves of.
var requests = []protocol.ID{"/tally/blob/1.0.0", "/tally/work/1.0.0"}

// Besiege lets so many strangers connect to the roles, each from an address of its own as
// far as there are any. They come back whenever they are turned away, and leave requests
// half sent. It lasts until the siege is lifted or the test ends.
func (n *Network) Besiege(strangers int, roles ...string) *Siege {
	n.t.Helper()
	ctx, cancel := context.WithCancel(n.ctx)
	var hosts []host.Host
	for i := range strangers {
		h, err := barehost.New(fmt.Sprintf("/ip4/127.0.%d.%d/tcp/0", 1+i/250, 2+i%250))
		if err != nil {
			n.t.Skipf("a siege needs addresses 127.0.x.y: %v", err)
		}
		hosts = append(hosts, h)
	}
	s := &Siege{}
	for _, h := range hosts {
		for _, role := range roles {
			at := n.Member(role).Env.Host
			to := peer.AddrInfo{ID: at.ID()}
			for _, a := range at.Addrs() {
				if strings.Contains(a, "/tcp/") {
					to.Addrs = append(to.Addrs, ma.StringCast(a))
				}
			}
			s.done.Go(func() { trouble(ctx, h, to) })
		}
	}
	s.stop = sync.OnceFunc(func() {
		cancel()
		s.done.Wait()
		for _, h := range hosts {
			_ = h.Close()
		}
	})
	n.t.Cleanup(s.stop)
	return s
}

// Spam floods the node that the roles speak to with the transfers of a rich and of a poor
// account, until the test ends.
func (n *Network) Spam() {
	n.t.Helper()
	ctx, cancel := context.WithCancel(n.ctx)
	from := n.Consumer.Env
	var all []*spam.Spammer
	for _, a := range []struct{ purse, gas uint64 }{{100_000_000, app.MaxGas}, {20_000, 100_000}} {
		s, err := spam.New(ctx, from.Chain, from.Account, a.purse, a.gas)
		if err != nil {
			n.t.Fatal(err)
		}
		all = append(all, s)
	}
	over := make(chan int)
	go func() { over <- spam.Flood(ctx, all...) }()
	n.t.Cleanup(func() {
		cancel()
		n.t.Logf("%d transactions of spammers were handed over", <-over)
	})
}

// Lift ends the siege.
func (s *Siege) Lift() { s.stop() }

// trouble is what one stranger does to one peer.
func trouble(ctx context.Context, h host.Host, to peer.AddrInfo) {
	for ctx.Err() == nil {
		if h.Connect(ctx, to) == nil {
			once := network.WithNoDial(ctx, "it is connected, or was turned away")
			for _, id := range requests {
				if s, err := h.NewStream(once, to.ID, id); err == nil {
					_, _ = s.Write([]byte{0, 0, 0, 60, 1})
				}
			}
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// ServeOnly makes a role give its blobs to some roles alone, from now on.
func (n *Network) ServeOnly(name string, to ...string) {
	n.t.Helper()
	env, friends := n.Member(name).Env, map[peer.ID]bool{}
	for _, friend := range to {
		friends[n.Member(friend).Env.Host.ID()] = true
	}
	env.Blobs.Serve(leases.Lease{Lease: &job.Lease{Line: job.Line{Leads: []job.Leader{{}}}}}) // the first lease makes a role serve; none that comes does again
	env.Host.ServeBlocks(env.Store, func(who peer.ID, _ canon.Hash, _ cid.Cid) bool { return friends[who] })
}
