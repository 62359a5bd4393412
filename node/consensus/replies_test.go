package consensus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/cosmos/cosmos-sdk/codec"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
)

// elsewhere is a listener whose connections come from another machine.
type elsewhere struct {
	net.Listener
	host string
}

type stranger struct {
	net.Conn
	host string
}

func (s stranger) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(s.host), Port: 1} }

func (e elsewhere) Accept() (net.Conn, error) {
	c, err := e.Listener.Accept()
	return stranger{c, e.host}, err
}

// large answers with a megabyte.
type large struct {
	*authtypes.UnimplementedQueryServer
}

func (large) AddressBytesToString(context.Context, *authtypes.AddressBytesToStringRequest) (*authtypes.AddressBytesToStringResponse, error) {
	return &authtypes.AddressBytesToStringResponse{AddressString: strings.Repeat("x", 1<<20)}, nil
}

// A hundred replies on one connection, of which none was read, stayed in memory.
func TestUnreadRepliesAreBounded(t *testing.T) {
	s := grpc.NewServer(grpc.ForceServerCodec(codec.NewProtoCodec(codectypes.NewInterfaceRegistry()).GRPCCodec()))
	authtypes.RegisterQueryServer(guarded{s, newShare(), nil}, large{})
	r := newReplyBudget()
	r.max, r.maxOfAddress = 7<<20, 5<<20
	r.patience = time.Second
	web := grpcOver(s, r)
	from := func(host string) *grpc.ClientConn {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = web.Serve(elsewhere{l, host}) }()
		c, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithInitialWindowSize(65_535), grpc.WithInitialConnWindowSize(65_535))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	t.Cleanup(func() { _ = web.Close() })
	const method = "/cosmos.auth.v1beta1.Query/AddressBytesToString"
	ask := func(c *grpc.ClientConn) error { // and read
		return c.Invoke(t.Context(), method, &authtypes.AddressBytesToStringRequest{}, &authtypes.AddressBytesToStringResponse{})
	}
	lazy, other := from("203.0.113.1"), from("203.0.113.2")
	for i := 0; status.Code(ask(from("203.0.113.1"))) != codes.ResourceExhausted; i++ {
		if i == 100 {
			t.Fatal("one address holds a hundred replies")
		}
		stream, err := lazy.NewStream(t.Context(), &grpc.StreamDesc{}, method)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(stream.SendMsg(&authtypes.AddressBytesToStringRequest{}), stream.CloseSend()); err != nil {
			t.Fatal(err)
		}
	}
	holds := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.of["203.0.113.1"]
	}
	if err := ask(other); err != nil {
		t.Errorf("another address is refused: %v", err)
	}
	if err := ask(from("127.0.0.1")); err != nil {
		t.Errorf("this machine is refused: %v", err)
	}
	for end := time.Now().Add(30 * time.Second); holds() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d bytes are held for ever", holds())
		}
	}
	if err := ask(from("203.0.113.1")); err != nil {
		t.Errorf("who held much is refused for ever: %v", err)
	}
}

func TestRepliesOverHTTPAreBounded(t *testing.T) {
	r := newReplyBudget()
	r.max, r.maxOfAddress = 2*(heldOfRequest+50), heldOfRequest+50
	reply := 0
	h := r.http(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write(make([]byte, reply))
	}))
	other := &reservation{budget: r, host: "203.0.113.9"}
	if err := other.reserve(r.maxOfAddress); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from  string
		bytes int
		want  int
	}{
		{"203.0.113.1:1", 50, http.StatusAccepted}, {"203.0.113.1:1", 51, http.StatusServiceUnavailable}, // of one address
		{"203.0.113.9:1", 1, http.StatusServiceUnavailable}, {"127.0.0.1:1", 1_000, http.StatusAccepted},
	} {
		req, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
		req.RemoteAddr, reply = c.from, c.bytes
		if h.ServeHTTP(w, req); w.Code != c.want {
			t.Errorf("%d bytes for %s: %d, want %d", c.bytes, c.from, w.Code, c.want)
		}
	}
	if other.close(); r.all != 0 || len(r.of) != 0 {
		t.Errorf("%d bytes are still held, of %v", r.all, r.of)
	}
}

// Over HTTP a request of many small pieces counted a whole buffer for each, and an honest
// transaction of a megabyte was refused as too large.
func TestRequestsOverHTTPCountTheirBytes(t *testing.T) {
	const packet = 1_448
	r := newReplyBudget()
	counts := 0
	h := r.http(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { counts = reservationOf(req.Context()).bytes }))
	other := &reservation{budget: r, host: "203.0.113.2"}
	if err := other.reserve(r.maxOfAddress - heldOfRequest - packet); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from        string
		bytes       int
		end         error
		want, count int
	}{
		{"203.0.113.1:1", maxBody, io.EOF, http.StatusOK, heldOfRequest + maxBody},
		{"203.0.113.1:1", maxBody + 1, io.EOF, http.StatusRequestEntityTooLarge, 0},
		{"203.0.113.2:1", packet, io.EOF, http.StatusOK, heldOfRequest + packet},
		{"203.0.113.2:1", packet + 1, io.EOF, http.StatusServiceUnavailable, 0}, // of one address
		{"203.0.113.1:1", packet, io.ErrUnexpectedEOF, http.StatusBadRequest, 0},
	} {
		sent := io.MultiReader(strings.NewReader(strings.Repeat("x", c.bytes)), iotest.ErrReader(c.end))
		req, w := httptest.NewRequest(http.MethodPost, "/", pieces{sent, packet}), httptest.NewRecorder()
		req.RemoteAddr, counts = c.from, 0
		if h.ServeHTTP(w, req); w.Code != c.want || counts != c.count {
			t.Errorf("%d bytes from %s: %d, want %d; they count %d, want %d: %s", c.bytes, c.from, w.Code, c.want, counts, c.count, w.Body)
		}
	}
}

// pieces gives so many bytes at a time.
type pieces struct {
	io.Reader
	most int
}

func (p pieces) Read(b []byte) (int, error) { return p.Reader.Read(b[:min(p.most, len(b))]) }

// A call whose request went on and on had all of it kept, in sixteen kilobytes for each
// byte that came by itself.
func TestRequestsOfStrangersAreBounded(t *testing.T) {
	r := newReplyBudget()
	r.max, r.maxOfAddress = 4<<20, 2<<20
	read := 0
	h := r.grpc(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		for p := make([]byte, 16<<10); ; read++ {
			if _, err := req.Body.Read(p); err != nil {
				return
			}
		}
	}))
	for from, want := range map[string]int{"203.0.113.1:1": 124, "127.0.0.1:1": 1_000} {
		req := httptest.NewRequest(http.MethodPost, "/", iotest.OneByteReader(strings.NewReader(strings.Repeat("x", 1_000))))
		req.RemoteAddr, read = from, 0
		if h.ServeHTTP(httptest.NewRecorder(), req); read != want {
			t.Errorf("%s: %d pieces are kept, want %d", from, read, want)
		}
	}
	if r.all != 0 {
		t.Errorf("%d bytes are still held", r.all)
	}
}

// Few replies are made at a time; who waits for a turn keeps nobody waiting.
func TestFewRepliesAreMadeAtATime(t *testing.T) {
	r, s := newReplyBudget(), newShare()
	s.turn <- struct{}{} // somebody's runs for ever
	made, finish := make(chan struct{}, 100), make(chan struct{})
	var waiting, done sync.WaitGroup
	serve := func(ctx context.Context, from int, next http.HandlerFunc) int {
		req, w := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil), httptest.NewRecorder()
		req.RemoteAddr = fmt.Sprintf("203.0.113.%d:1", from)
		r.http(next).ServeHTTP(w, req)
		return w.Code
	}
	ctx, cancel := context.WithCancel(t.Context())
	for i := range 2 * maxMade {
		waiting.Go(func() {
			serve(ctx, i, func(w http.ResponseWriter, req *http.Request) {
				if err := s.do(req.Context(), req.RemoteAddr, func() {}); !errors.Is(err, errBusy) {
					t.Error(err)
				}
			})
		})
	}
	enough := time.After(time.Minute)
	for wait := true; wait; time.Sleep(time.Millisecond) { // till all of them are among those that wait
		s.mu.Lock()
		wait = s.all < 2*maxMade
		s.mu.Unlock()
		select {
		case <-enough:
			t.Fatal("who waits for a turn keeps others waiting for theirs")
		default:
		}
	}
	for i := range maxMade {
		done.Go(func() {
			serve(t.Context(), i, func(http.ResponseWriter, *http.Request) { made <- struct{}{}; <-finish })
		})
	}
	for range maxMade {
		select {
		case <-made:
		case <-enough:
			t.Fatal("who waits for a turn keeps replies from being made")
		}
	}
	late, stop := context.WithCancel(t.Context())
	stop()
	if code := serve(late, 1, func(http.ResponseWriter, *http.Request) { t.Error("one too many is made") }); code != http.StatusTooManyRequests {
		t.Errorf("one too many: %d", code)
	}
	close(finish)
	done.Wait()
	cancel()
	waiting.Wait()
	if len(r.made) != 0 || r.all != 0 {
		t.Errorf("%d are still made, of %d bytes", len(r.made), r.all)
	}
}
