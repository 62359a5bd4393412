package p2p

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/prometheus/client_golang/prometheus"
)

// keyOf returns a peer key that n fixes.
func keyOf(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

func newHost(t testing.TB, n byte, listen ...string) *Host {
	t.Helper()
	h, err := New(Options{Key: keyOf(n), Listen: listen})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// know tells a where b listens.
func know(t testing.TB, a, b *Host) {
	t.Helper()
	if err := a.SetAddrs(b.ID(), b.Addrs()); err != nil {
		t.Fatal(err)
	}
}

// soon bounds waits for what must happen; a test that passes never sees it.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// until waits for what happens in the background.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ctx := soon(t)
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain until %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

var transports = map[string]string{
	"tcp":  "/ip4/127.0.0.1/tcp/0",
	"quic": "/ip4/127.0.0.1/udp/0/quic-v1",
}

func TestHandlerKnowsWhoAsks(t *testing.T) {
	for name, listen := range transports {
		t.Run(name, func(t *testing.T) {
			a, b := newHost(t, 1, listen), newHost(t, 2, listen)
			know(t, a, b)
			b.Handle(echo, func(_ context.Context, from peer.ID, _ []byte) ([]byte, error) {
				key, err := PublicKey(from)
				return key, err
			})
			got, err := a.Call(soon(t), echo, b.ID(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, keyOf(1).Public().(ed25519.PublicKey)) {
				t.Fatalf("the handler saw %x", got)
			}
			if !a.Connected(b.ID()) || !b.Connected(a.ID()) || a.Connected(a.ID()) {
				t.Fatal("Connected does not tell")
			}
		})
	}
}

// An address proves nothing: at the other end must be the key that was asked for.
func TestWrongPeerAtAddress(t *testing.T) {
	a, b, c := newHost(t, 1), newHost(t, 2), newHost(t, 3)
	if err := a.SetAddrs(c.ID(), b.Addrs()); err != nil {
		t.Fatal(err)
	}
	if err := a.Connect(soon(t), c.ID()); err == nil || a.Connected(c.ID()) {
		t.Fatalf("connected to the wrong peer: %v", err)
	}
}

func TestNewFails(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("a host started without a key")
	}
	if _, err := New(Options{Key: keyOf(1), Listen: []string{"127.0.0.1:80"}}); err == nil {
		t.Error("a host started without a valid address")
	}
	r := prometheus.NewRegistry()
	h, err := New(Options{Key: keyOf(1), Metrics: r})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if _, err := New(Options{Key: keyOf(2), Metrics: r}); err == nil {
		t.Error("two hosts share one registry")
	}
}

// Close must not wait for peers or slow handlers.
func TestCloseEndsExchanges(t *testing.T) {
	a, b := newHost(t, 1), newHost(t, 2)
	know(t, a, b)
	entered := make(chan struct{})
	slow := echo
	slow.Timeout = time.Hour
	b.Handle(slow, func(ctx context.Context, _ peer.ID, _ []byte) ([]byte, error) {
		close(entered)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	failed := make(chan error, 1)
	go func() {
		_, err := a.Call(context.Background(), slow, b.ID(), nil)
		failed <- err
	}()
	<-entered
	raw := openRaw(t, a, b, slow.ID)
	if _, err := raw.Write(binary.BigEndian.AppendUint32(nil, 10)); err != nil {
		t.Fatal(err)
	}
	b.Keep(a.ID())
	for range 2 {
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-failed; err == nil {
		t.Fatal("the exchange outlived the host")
	}
	if _, err := b.Call(soon(t), slow, a.ID(), nil); err == nil {
		t.Fatal("a closed host made a call")
	}
}

func TestCloseReportsHangingHandler(t *testing.T) {
	a, b := newHost(t, 1), newHost(t, 2)
	know(t, a, b)
	entered, end := make(chan struct{}), make(chan struct{})
	defer close(end)
	b.Handle(echo, func(context.Context, peer.ID, []byte) ([]byte, error) {
		close(entered)
		<-end
		return nil, nil
	})
	go a.Call(context.Background(), echo, b.ID(), nil)
	<-entered
	if err := b.Close(); err == nil || !strings.Contains(err.Error(), "handler") {
		t.Fatalf("Close: %v", err)
	}
}

func TestKeepFollowsPeer(t *testing.T) {
	a, b := newHost(t, 1), newHost(t, 2)
	know(t, a, b)
	a.Keep(b.ID())
	a.Keep(b.ID())
	// A host that closes before it has accepted a connection does not tell the other
	// side, which then waits for the connection to time out.
	connected := func() bool { return a.Connected(b.ID()) && b.Connected(a.ID()) }
	until(t, "they are connected", connected)

	same := b.Addrs()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, "a sees that b is gone", func() bool { return !a.Connected(b.ID()) })
	b = newHost(t, 2, same...)
	until(t, "they are connected again", connected)

	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, "a sees that b is gone again", func() bool { return !a.Connected(b.ID()) })
	b = newHost(t, 2)
	know(t, a, b)
	until(t, "a finds b at its new addresses", connected)

	a.Release(b.ID())
	a.Release(b.ID())
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, "the keeper has ended", func() bool { return len(a.kept) == 0 })
}

// lines is a log that a test waits for.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	select {
	case l <- string(b):
	default:
	}
	return len(b), nil
}

// A peer that has moved is not left to the end of a long wait.
func TestNewAddressesEndTheWait(t *testing.T) {
	log := make(lines, 1)
	a, err := New(Options{Key: keyOf(1), Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, gone := newHost(t, 2), newHost(t, 3, transports["tcp"])
	if err := a.SetAddrs(b.ID(), gone.Addrs()); err != nil {
		t.Fatal(err)
	}
	gone.Close()
	a.shortest, a.longest = time.Hour, time.Hour
	a.Keep(b.ID())
	if line := <-log; !strings.Contains(line, "cannot connect") {
		t.Fatal(line)
	}
	know(t, a, b)
	until(t, "a has found b", func() bool { return a.Connected(b.ID()) })
}

func TestConnectSoonAfterFailure(t *testing.T) {
	a, b := newHost(t, 1), newHost(t, 2, transports["tcp"])
	know(t, a, b)
	addrs := b.Addrs()
	b.Close()
	if err := a.Connect(soon(t), b.ID()); err == nil {
		t.Fatal("connected to a closed host")
	}
	newHost(t, 2, addrs...)
	if err := a.Connect(soon(t), b.ID()); err != nil {
		t.Fatal(err)
	}
}

func TestKeepIsForOthers(t *testing.T) {
	a := newHost(t, 1)
	a.Keep(a.ID())
	if len(a.kept) != 0 {
		t.Fatal("a host keeps a connection to itself")
	}
	a.Close()
	a.Keep(newHost(t, 2).ID())
	if len(a.kept) != 0 {
		t.Fatal("a closed host keeps a connection")
	}
}

func TestAddrs(t *testing.T) {
	a, b := newHost(t, 1), newHost(t, 2)
	for _, c := range []struct {
		addrs []string
		want  string // words of the error; empty: none
	}{
		{[]string{"/ip4/127.0.0.1/tcp/1"}, ""},
		{[]string{"/dns4/example.org/udp/1/quic-v1", "/ip6/::1/tcp/1"}, ""},
		{[]string{"/ip4/127.0.0.1/tcp/1/p2p/" + b.ID().String()}, ""},
		{[]string{"/ip4/127.0.0.1/tcp/1/p2p/" + a.ID().String()}, "is not one of peer"},
		{[]string{"/p2p/" + b.ID().String()}, "is not one of peer"},
		{nil, "give 1 to 8"},
		{make([]string, 9), "give 1 to 8"},
		{[]string{""}, "address"},
		{[]string{"127.0.0.1:80"}, "address"},
		{[]string{"/ip4/300.0.0.1/tcp/1"}, "address"},
		{[]string{"/dns4/" + strings.Repeat("a", 300) + "/tcp/1"}, "limit is 256"},
	} {
		err := a.SetAddrs(b.ID(), c.addrs)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: %v, want %q", c.addrs, err, c.want)
		}
	}
}

// Hosts of one process must not count for each other.
func TestMetricsArePerHost(t *testing.T) {
	regs := [2]*prometheus.Registry{prometheus.NewRegistry(), prometheus.NewRegistry()}
	var hosts [2]*Host
	for i := range hosts {
		h, err := New(Options{Key: keyOf(byte(i + 1)), Metrics: regs[i]})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		hosts[i] = h
	}
	know(t, hosts[0], hosts[1])
	hosts[1].Handle(echo, func(_ context.Context, _ peer.ID, b []byte) ([]byte, error) {
		if string(b) == "no" {
			return nil, ErrRefused
		}
		return b, nil
	})
	for _, q := range []string{"a", "b", "no"} {
		hosts[0].Call(soon(t), echo, hosts[1].ID(), []byte(q))
	}
	for i, side := range []string{"out", "in"} {
		count := func(name, outcome string) float64 { return metric(t, regs[i], name, side, outcome) }
		until(t, "both sides have counted", func() bool {
			return count("tally_p2p_exchanges_total", "ok") == 2 && count("tally_p2p_exchanges_total", "refused") == 1
		})
		if n := metric(t, regs[i], "tally_p2p_exchanges_total"); n != 3 {
			t.Errorf("%s: %v exchanges in all, want 3", side, n)
		}
		if n := metric(t, regs[i], "tally_p2p_exchange_seconds", side); n != 3 {
			t.Errorf("%s: %v exchanges timed, want 3", side, n)
		}
		if n := metric(t, regs[i], "tally_p2p_exchanges_running"); n != 0 {
			t.Errorf("%s: %v exchanges run", side, n)
		}
		if n := metric(t, regs[i], "tally_p2p_peers"); n != 1 {
			t.Errorf("%v peers, want 1", n)
		}
	}
	// What one sent the other received, but for what is on its way.
	until(t, "bytes were counted", func() bool {
		return metric(t, regs[0], "tally_p2p_sent_bytes_total") > 0 && metric(t, regs[1], "tally_p2p_received_bytes_total") > 0
	})
}

// metric adds up the series of a metric that carry all the label values.
func metric(t *testing.T, r *prometheus.Registry, name string, labels ...string) (sum float64) {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			var values []string
			for _, l := range m.GetLabel() {
				values = append(values, l.GetValue())
			}
			if !slices.ContainsFunc(labels, func(v string) bool { return !slices.Contains(values, v) }) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}
