package p2p

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"pgregory.net/rapid"
)

var echo = Protocol{ID: "/test/echo", MaxRequest: 64 << 10, MaxResponse: 64 << 10, Timeout: 20 * time.Second, PerPeer: 4}

func echoing(_ context.Context, _ peer.ID, b []byte) ([]byte, error) { return b, nil }

// openRaw opens a stream from a to b, to be abused.
func openRaw(t testing.TB, a, b *Host, id protocol.ID) network.Stream {
	t.Helper()
	know(t, a, b)
	s, err := a.host.NewStream(soon(t), b.ID(), id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Reset() })
	return s
}

// wantReset reads until the other side is found to have given up.
func wantReset(t *testing.T, s network.Stream) {
	t.Helper()
	s.SetReadDeadline(time.Now().Add(20 * time.Second))
	b, err := io.ReadAll(io.LimitReader(s, 100))
	if err == nil || len(b) != 0 || !errors.Is(err, network.ErrReset) {
		t.Fatalf("want a reset, got %d bytes, %v", len(b), err)
	}
}

func TestAnyMessageRoundTrips(t *testing.T) {
	for name, listen := range transports {
		t.Run(name, func(t *testing.T) {
			a, b := newHost(t, 1, listen), newHost(t, 2, listen)
			know(t, a, b)
			b.Handle(echo, echoing)
			rapid.Check(t, func(rt *rapid.T) {
				n := rapid.OneOf(rapid.IntRange(0, 10), rapid.IntRange(0, echo.MaxRequest), rapid.Just(echo.MaxRequest)).Draw(rt, "n")
				q := bytes.Repeat([]byte{rapid.Byte().Draw(rt, "byte")}, n)
				got, err := a.Call(soon(t), echo, b.ID(), q)
				if err != nil || !bytes.Equal(got, q) {
					rt.Fatalf("%d bytes came back as %d: %v", n, len(got), err)
				}
			})
		})
	}
}

func TestOutcomes(t *testing.T) {
	a, b := newHost(t, 1), newHost(t, 2)
	know(t, a, b)
	b.Handle(echo, func(_ context.Context, _ peer.ID, q []byte) ([]byte, error) {
		switch string(q) {
		case "refuse":
			return nil, ErrRefused
		case "fail":
			return nil, errors.New("no such unit\x1b[2J" + strings.Repeat("!", 9999))
		case "long":
			return make([]byte, echo.MaxResponse+1), nil
		}
		return q, nil
	})
	call := func(q string) error {
		_, err := a.Call(soon(t), echo, b.ID(), []byte(q))
		return err
	}
	if err := call("refuse"); !errors.Is(err, ErrRefused) {
		t.Errorf("refuse: %v", err)
	}
	// The words of a peer are shown, bounded, and cannot drive a terminal.
	if err := call("fail"); err == nil || !strings.Contains(err.Error(), "no such unit") ||
		len(err.Error()) > 2*maxWords || strings.ContainsRune(err.Error(), '\x1b') {
		t.Errorf("fail: %v", err)
	}
	if err := call("long"); err == nil {
		t.Error("a response passed the limit")
	}
	if err := call(strings.Repeat("x", echo.MaxRequest+1)); err == nil || !strings.Contains(err.Error(), "limit") {
		t.Errorf("request above the limit: %v", err)
	}
	if _, err := a.Call(soon(t), Protocol{ID: echo.ID}, b.ID(), nil); err == nil || !strings.Contains(err.Error(), "lacks a limit") {
		t.Errorf("protocol without limits: %v", err)
	}
	other := echo
	other.ID = "/test/other"
	if _, err := a.Call(soon(t), other, b.ID(), nil); err == nil {
		t.Error("a protocol that nobody handles answered")
	}
	if err := call("still well"); err != nil {
		t.Error(err)
	}
}

func TestHostileRequests(t *testing.T) {
	a, b, c := newHost(t, 1), newHost(t, 2), newHost(t, 3)
	know(t, c, b)
	short := echo
	short.Timeout = 300 * time.Millisecond
	b.Handle(short, func(_ context.Context, _ peer.ID, q []byte) ([]byte, error) {
		if string(q) != "honest" {
			t.Errorf("%.20q reached the handler", q)
		}
		return q, nil
	})
	prefix := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	for name, attack := range map[string]func(s network.Stream){
		"length above the limit": func(s network.Stream) { s.Write(prefix(uint32(short.MaxRequest + 1))) },
		"length without end":     func(s network.Stream) { s.Write(prefix(math.MaxUint32)) },
		"half a prefix":          func(s network.Stream) { s.Write(prefix(1)[:2]); s.CloseWrite() },
		"half a message":         func(s network.Stream) { s.Write(append(prefix(10), "12345"...)); s.CloseWrite() },
		"silence":                func(s network.Stream) { s.Write(nil) },
		"slow-loris": func(s network.Stream) {
			for _, c := range append(prefix(100), make([]byte, 99)...) {
				if _, err := s.Write([]byte{c}); err != nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var slow []network.Stream
			for range 3 * short.PerPeer {
				s := openRaw(t, a, b, short.ID)
				if name == "slow-loris" || name == "silence" {
					slow = append(slow, s)
					go attack(s)
				} else {
					attack(s)
					wantReset(t, s)
				}
			}
			// Others are served meanwhile; and so is the attacker, afterwards.
			if _, err := c.Call(soon(t), echo, b.ID(), []byte("honest")); err != nil {
				t.Error(err)
			}
			// The far side has seen each of them, and ended it.
			for _, s := range slow {
				s.SetReadDeadline(time.Now().Add(20 * time.Second))
				var late net.Error
				if _, err := io.Copy(io.Discard, s); errors.As(err, &late) && late.Timeout() {
					t.Error("a slow stream is served for ever")
				}
			}
			until(t, "the places are free again", func() bool {
				b.in.mu.Lock()
				defer b.in.mu.Unlock()
				return len(b.in.lanes) == 0
			})
			if _, err := a.Call(soon(t), echo, b.ID(), []byte("honest")); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestHostileResponses(t *testing.T) {
	a, b := newHost(t, 1), newHost(t, 2)
	know(t, a, b)
	short := echo
	short.Timeout = 300 * time.Millisecond
	for name, c := range map[string]struct {
		response []byte
		hang     bool
		want     string
	}{
		"length above the limit": {response: binary.BigEndian.AppendUint32([]byte{byte(statusOK)}, uint32(short.MaxResponse+1)), want: "limit"},
		"length without end":     {response: []byte{byte(statusOK), 255, 255, 255, 255}, want: "limit"},
		"too many words":         {response: binary.BigEndian.AppendUint32([]byte{byte(statusFailed)}, maxWords+1), want: "limit"},
		"refusal with a body":    {response: []byte{byte(statusRefused), 0, 0, 0, 1, 'x'}, want: "limit"},
		"unknown status":         {response: []byte{byte(statuses), 0, 0, 0, 0}, want: "unknown status"},
		"nothing":                {want: "EOF"},
		"half a response":        {response: []byte{byte(statusOK), 0, 0, 0, 9, 'x'}, want: "breaks off"},
		"silence":                {hang: true, want: "deadline"},
		"silence in the middle":  {response: []byte{byte(statusOK), 0, 0, 0, 9, 'x'}, hang: true, want: "deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			b.host.SetStreamHandler(short.ID, func(s network.Stream) {
				s.Write(c.response)
				if !c.hang {
					io.Copy(io.Discard, s)
					s.Close()
				}
			})
			if _, err := a.Call(soon(t), short, b.ID(), []byte("q")); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestGreedyPeerIsBusy(t *testing.T) {
	a, b, c := newHost(t, 1), newHost(t, 2), newHost(t, 3)
	know(t, c, b)
	know(t, b, a) // a party may greet with more than a stranger
	release := make(chan struct{})
	var mu sync.Mutex
	running, most := map[peer.ID]int{}, 0
	b.Handle(echo, func(_ context.Context, from peer.ID, q []byte) ([]byte, error) {
		mu.Lock()
		running[from]++
		most = max(most, running[from])
		mu.Unlock()
		if from == a.ID() {
			<-release
		}
		return q, nil
	})
	// Past its own limit, as an honest host would not go.
	var busy int
	for i := range 2*echo.PerPeer + 3 {
		s := openRaw(t, a, b, echo.ID)
		if err := writeRequest(s, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if i < 2*echo.PerPeer {
			until(t, "the handler runs", func() bool { mu.Lock(); defer mu.Unlock(); return running[a.ID()] == i+1 })
			continue
		}
		st, _, err := readResponse(s, 10, func(int) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if st == statusBusy {
			busy++
		}
	}
	mu.Lock()
	if busy != 3 || most != 2*echo.PerPeer {
		t.Errorf("%d busy, %d at a time", busy, most)
	}
	mu.Unlock()
	if _, err := c.Call(soon(t), echo, b.ID(), nil); err != nil {
		t.Fatalf("another peer: %v", err)
	}
	if _, err := a.Call(soon(t), echo, b.ID(), nil); !errors.Is(err, ErrBusy) {
		t.Fatalf("the greedy peer: %v", err)
	}
	close(release)
}

// An honest caller waits for a place instead of being told that there is none.
func TestCallsQueue(t *testing.T) {
	a, b := newHost(t, 1), newHost(t, 2)
	know(t, a, b)
	var mu sync.Mutex
	running, most := 0, 0
	b.Handle(echo, func(_ context.Context, _ peer.ID, q []byte) ([]byte, error) {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		time.Sleep(time.Millisecond)
		mu.Lock()
		running--
		mu.Unlock()
		return q, nil
	})
	var wg sync.WaitGroup
	for range 20 * echo.PerPeer {
		wg.Go(func() {
			if _, err := a.Call(soon(t), echo, b.ID(), []byte("x")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	mu.Lock()
	defer mu.Unlock()
	if most > echo.PerPeer {
		t.Errorf("%d at a time, want at most %d", most, echo.PerPeer)
	}
	if len(a.out.lanes) != 0 {
		t.Error("a lane is left over")
	}
}

func TestCallEndsWithItsContext(t *testing.T) {
	a, b := newHost(t, 1), newHost(t, 2)
	know(t, a, b)
	one := echo
	one.PerPeer = 1
	entered := make(chan struct{}, 9)
	b.Handle(one, func(ctx context.Context, _ peer.ID, _ []byte) ([]byte, error) {
		entered <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	ctx, cancel := context.WithCancel(soon(t))
	first, queued := make(chan error, 1), make(chan error, 1)
	go func() { _, err := a.Call(ctx, one, b.ID(), nil); first <- err }()
	<-entered
	go func() { _, err := a.Call(ctx, one, b.ID(), nil); queued <- err }()
	cancel()
	for _, c := range []chan error{first, queued} {
		if err := <-c; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled call: %v", err)
		}
	}
}

func TestTyped(t *testing.T) {
	a, b := newHost(t, 1), newHost(t, 2)
	know(t, a, b)
	text := Codec[string]{
		Encode: func(s string) []byte { return []byte(s) },
		Decode: func(b []byte) (string, error) {
			if len(b) > 5 {
				return "", errors.New("too wordy")
			}
			return string(b), nil
		},
	}
	greet := Typed[string, string]{echo, text, text}
	greet.Handle(b, func(_ context.Context, from peer.ID, q string) (string, error) {
		if from != a.ID() || len(q) > 5 {
			t.Errorf("%q from %s reached the handler", q, from)
		}
		if q == "no" {
			return "", ErrRefused
		}
		return q + q, nil
	})
	if got, err := greet.Call(soon(t), a, b.ID(), "hi"); err != nil || got != "hihi" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := greet.Call(soon(t), a, b.ID(), "no"); !errors.Is(err, ErrRefused) {
		t.Errorf("refused: %v", err)
	}
	if _, err := greet.Call(soon(t), a, b.ID(), "too long"); err == nil || !strings.Contains(err.Error(), "it says") {
		t.Errorf("undecodable request: %v", err)
	}
	if _, err := greet.Call(soon(t), a, b.ID(), "long"); err == nil || !strings.Contains(err.Error(), "read the response") {
		t.Errorf("undecodable response: %v", err)
	}
}
