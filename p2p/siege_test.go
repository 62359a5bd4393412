package p2p

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/tally-network/tally/internal/testkit/barehost"
)

// crowd is strangers with addresses 127.0.0.2 and on, who keep to no limits.
type crowd struct {
	hosts []host.Host
	addr  []ma.Multiaddr // of the host that they besiege
}

// newCrowd makes n strangers at so many addresses.
func newCrowd(t testing.TB, at *Host, n, addrs int) *crowd {
	t.Helper()
	c := &crowd{}
	for i := range n {
		h, err := barehost.New(fmt.Sprintf("/ip4/127.0.0.%d/tcp/0", 2+i%addrs))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		c.hosts = append(c.hosts, h)
	}
	for _, a := range at.Addrs() {
		if !strings.Contains(a, "quic") {
			c.addr = append(c.addr, ma.StringCast(a))
		}
	}
	return c
}

// connect lets each stranger connect, if it can.
func (c *crowd) connect(ctx context.Context, at *Host) {
	for _, h := range c.hosts {
		h.Connect(ctx, peer.AddrInfo{ID: at.ID(), Addrs: c.addr})
	}
}

// registeredAs tells b's registry of a.
func registeredAs(b, a *Host) { b.SetRegistered(Peers{a.ID(): a.Addrs()}) }

func wantEcho(t *testing.T, a, b *Host) {
	t.Helper()
	if _, err := a.Call(soon(t), echo, b.ID(), []byte("honest")); err != nil {
		t.Fatalf("an honest call: %v", err)
	}
}

// However many strangers are connected, who is registered is let in.
func TestStrangersKeepNobodyOut(t *testing.T) {
	a, b := newHost(t, 1), newHost(t, 2)
	know(t, a, b)
	b.Handle(echo, echoing)
	registeredAs(b, a)
	c := newCrowd(t, b, 200, 40)
	c.connect(soon(t), b)
	wantEcho(t, a, b)
	if n := len(b.host.Network().Peers()); n > shares[stranger].conns+1 {
		t.Errorf("%d peers are connected, strangers may be %d", n, shares[stranger].conns)
	}
}

// Silent connections that prove no key hold places for newcomers only.
func TestHalfOpenHandshakes(t *testing.T) {
	a, b := newHost(t, 1, transports["tcp"]), newHost(t, 2, transports["tcp"])
	know(t, a, b)
	b.Handle(echo, echoing)
	registeredAs(b, a)
	to := strings.Split(b.Addrs()[0], "/")
	for i := range 400 {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i%50))}}
		c, err := d.DialContext(soon(t), "tcp", net.JoinHostPort(to[2], to[4]))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	wantEcho(t, a, b)
}

// Streams of strangers with half a request leave those of others alone.
func TestHalfSentRequests(t *testing.T) {
	a, b := newHost(t, 1), newHost(t, 2)
	know(t, a, b)
	from := newStore(t)
	r := put(t, from, noisy(1000))
	b.ServeBlocks(from, everybody)
	registeredAs(b, a)
	c := newCrowd(t, b, 64, 32)
	c.connect(soon(t), b)
	for range 2 * blob.PerPeer {
		for _, h := range c.hosts {
			if s, err := h.NewStream(network.WithNoDial(soon(t), "once"), b.ID(), blob.ID); err == nil {
				s.Write(binary.BigEndian.AppendUint32(nil, 10))
			}
		}
	}
	until(t, "requests are half read", func() bool {
		b.in.mu.Lock()
		defer b.in.mu.Unlock()
		return len(b.in.lanes) > 10
	})
	for range 20 {
		if _, err := a.Source(b.ID()).Block(soon(t), r.CID); err != nil {
			t.Fatalf("an honest request: %v", err)
		}
	}
}

// A peer owes the first bytes at once and the others at a rate, however long the
// exchange may take.
func TestSlowPeersAreCutOff(t *testing.T) {
	a, b := newHost(t, 1), newHost(t, 2)
	know(t, b, a)
	b.patience = 100 * time.Millisecond
	long := echo
	long.Timeout, long.MaxResponse = time.Hour, 8<<20
	b.Handle(long, func(context.Context, peer.ID, []byte) ([]byte, error) { return make([]byte, long.MaxResponse), nil })
	for name, sent := range map[string][]byte{
		"nothing": nil, "half a length": {0, 0}, "half a request": {0, 0, 0, 100, 1, 2, 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := openRaw(t, a, b, long.ID)
			s.Write(sent)
			wantReset(t, s)
		})
	}
	t.Run("reading nothing", func(t *testing.T) {
		b.slowest = 64 << 20
		s := openRaw(t, a, b, long.ID)
		if err := writeRequest(s, nil); err != nil {
			t.Fatal(err)
		}
		until(t, "the answer begins", func() bool { return b.turns[party].busy() == 1 })
		until(t, "it is given up", func() bool { return b.turns[party].busy() == 0 })
	})
	t.Run("no answer", func(t *testing.T) {
		a.host.SetStreamHandler(long.ID, func(s network.Stream) {})
		prompt := long
		prompt.Prompt = 100 * time.Millisecond
		if _, err := b.Call(soon(t), prompt, a.ID(), nil); err == nil || t.Context().Err() != nil {
			t.Fatalf("want that the answer is given up: %v", err)
		}
	})
	t.Run("half an answer", func(t *testing.T) {
		a.host.SetStreamHandler(long.ID, func(s network.Stream) { s.Write([]byte{byte(statusOK), 0, 0, 0, 9, 'x'}) })
		if _, err := b.Call(soon(t), long, a.ID(), nil); err == nil {
			t.Fatal("half an answer was taken")
		}
	})
}

// A peer that asks for much does not keep those waiting that ask for little.
func TestTurnsAreFair(t *testing.T) {
	n := newTurns(4)
	one := func(p peer.ID) (leave func()) {
		leave, err := n.take(soon(t), p)
		if err != nil {
			t.Fatal(err)
		}
		return leave
	}
	var leaves []func()
	for _, p := range []peer.ID{"b", "c", "d"} {
		leaves = append(leaves, one(p))
	}
	first := one("greedy")
	var served atomic.Int32
	for range 5 {
		go func() { one("greedy")(); served.Add(1) }()
	}
	until(t, "the greedy one waits", func() bool { n.mu.Lock(); defer n.mu.Unlock(); return len(n.waiting) == 5 })
	got := make(chan func())
	go func() { got <- one("e") }()
	until(t, "another waits behind it", func() bool { n.mu.Lock(); defer n.mu.Unlock(); return len(n.waiting) == 6 })
	leaves[0]()
	e := <-got
	if served.Load() != 0 {
		t.Error("a second request of one peer was answered before the first of another")
	}
	e()
	first()
	until(t, "all are served", func() bool { return served.Load() == 5 })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	hold := one("greedy")
	if _, err := n.take(ctx, "greedy"); err == nil {
		t.Error("a place was given that is not there")
	}
	hold()
	leaves[1]()
	leaves[2]()
	if n.free != 4 || len(n.taken) != 0 || len(n.waiting) != 0 {
		t.Errorf("places are lost: %+v", n)
	}
}

// Whoever enters the registry while it is connected is a stranger no more, and the
// other way about.
func TestClassesFollowTheRegistry(t *testing.T) {
	a, b := newHost(t, 1), newHost(t, 2)
	know(t, a, b)
	if err := a.Connect(soon(t), b.ID()); err != nil {
		t.Fatal(err)
	}
	until(t, "b has a stranger", func() bool { return b.Strangers() == 1 && b.Connected(a.ID()) })
	vouchedFor := func() bool { return b.host.ConnManager().IsProtected(a.ID(), vouched) }
	for _, step := range []struct {
		do   func()
		want class
	}{
		{func() {}, stranger},
		{func() { registeredAs(b, a) }, registered},
		{func() { b.SetParties("x", Peers{a.ID(): nil}) }, party},
		{func() { b.SetRegistered(nil) }, party},
		{func() { b.SetParties("x", nil) }, stranger},
		{func() { know(t, b, a) }, party},
	} {
		step.do()
		if got := b.door.classOf(a.ID()); got != step.want || step.want != party && vouchedFor() != (got != stranger) {
			t.Errorf("class %d, want %d; protected %v", got, step.want, vouchedFor())
		}
	}
}

// However many consumers there are, whom orders of a few utally name, who is registered
// and who takes part in a lease is let in. What is known of one ends with its order.
func TestConsumersKeepNobodyOut(t *testing.T) {
	a, b := newHost(t, 1), newHost(t, 2)
	know(t, a, b)
	b.Handle(echo, echoing)
	registeredAs(b, a)
	c := newCrowd(t, b, 100, 40)
	for i, h := range c.hosts {
		b.SetConsumer(fmt.Sprint(i), Peers{h.ID(): nil})
		if err := b.SetAddrs(h.ID(), []string{h.Addrs()[0].String()}); err != nil { // to fetch its files
			t.Fatal(err)
		}
	}
	if err := b.Connect(soon(t), c.hosts[0].ID()); err != nil {
		t.Fatal(err)
	}
	outbound := 0
	b.door.managers[consumer].ViewSystem(func(s network.ResourceScope) error { outbound = s.Stat().NumConnsOutbound; return nil })
	if outbound != 1 {
		t.Errorf("%d connections to consumers count as theirs", outbound)
	}
	b.SetParties("lease", Peers{a.ID(): nil})
	c.connect(soon(t), b)
	for _, h := range c.hosts {
		if got := b.door.classOf(h.ID()); got != consumer {
			t.Fatalf("a consumer is of class %d", got)
		}
	}
	wantEcho(t, a, b)
	if n := len(b.host.Network().Peers()); n > shares[consumer].conns+1 {
		t.Errorf("%d peers are connected, consumers may be %d", n, shares[consumer].conns)
	}
	for i := range c.hosts {
		b.SetConsumer(fmt.Sprint(i), nil)
	}
	if n := len(b.door.dialled) + len(b.addrs) + len(b.door.groups); n != 2 { // the registry, the lease
		t.Errorf("%d things are known of consumers whose orders have ended", n-2)
	}
}

// An address whose connections keep coming back is left waiting before anything is
// computed for it; another is not.
func TestDialStorm(t *testing.T) {
	a, b := newHost(t, 1, transports["tcp"]), newHost(t, 2, transports["tcp"])
	know(t, a, b)
	b.Handle(echo, echoing)
	registeredAs(b, a)
	c := newCrowd(t, b, 1, 1)
	refused := 0
	for range 3 * shares[newcomer].addrBurst {
		if err := c.hosts[0].Connect(soon(t), peer.AddrInfo{ID: b.ID(), Addrs: c.addr}); err != nil {
			refused++
			c.hosts[0].Network().(*swarm.Swarm).Backoff().Clear(b.ID())
		}
		c.hosts[0].Network().ClosePeer(b.ID())
	}
	if refused == 0 {
		t.Error("every connection was let in")
	}
	wantEcho(t, a, b)
}

// busy returns how many places are taken.
func (t *turns) busy() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.taken {
		n += k
	}
	return n
}
